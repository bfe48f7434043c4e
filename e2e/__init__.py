"""End-to-end: a real Kubernetes, real SGLang, and the tests that run on them.

`cluster/` is the stage (Kubernetes), `engines/` puts SGLang on it, `incident/` shows why the project exists. Nothing of
the product imports from here.
"""
