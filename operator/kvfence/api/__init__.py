"""The kinds of `kvfence.io` as typed models: the only place where a field of the API is declared.

`crds/` is generated from them: `make generate`, or `python -m kvfence.api` on standard output.

May import: nothing else of kvfence. No input or output, no asyncio, no Kubernetes client.
"""
