"""The stage: a local one-node Kubernetes from real parts, brought up and taken away by `python -m e2e.cluster`.

`stage.py` is the way in; `node.py` says how nothing is left behind. What is built (`golang.py`, `clients.py`) and the
image store are cache and stay.
"""
