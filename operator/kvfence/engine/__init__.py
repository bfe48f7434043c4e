"""What we know of SGLang: flags per version, the answers of its servers, its metrics and log, clients that ask it.

May import: `api`, `domain`, `render`. Not `verify` or `kube`, which stand beside it.
"""
