"""The isolation canaries: prompts that carry markers, the runs that send them, the verdict on what came back.

May import: `api`, `domain`, `render`. Not `engine` or `kube`, which stand beside it.
"""
