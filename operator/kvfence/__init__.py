"""kvfence: LLM inference pools on Kubernetes in which one user's data cannot reach another's answer.

The packages below import in one direction only; each may import what stands before it:

    api < domain < render < engine, verify, kube, catalogue < controller < app, cli

`engine`, `verify`, `kube` and `catalogue` do not know of each other, nor do `app` and `cli`. The rules are
import-linter contracts in `pyproject.toml`.
"""

__version__ = "0.1.0.dev1"  # the distribution reads its version here; kvfence_engine carries the same one
