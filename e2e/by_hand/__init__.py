"""Servers started by hand, without Kubernetes and without us: what `kvfence doctor` and `kvfence canary` say of them.

Everything is real: SGLang of two versions, both routers, and the commands as a user runs them.
"""
