"""The part of kvfence that runs inside an SGLang engine.

It runs in the user's own image, on that image's Python and beside that image's packages. So it is pure Python, has no
dependencies of its own, runs on Python 3.10, and imports nothing of the operator.
"""

__version__ = "0.1.0.dev1"  # the distribution reads its version here; kvfence carries the same one
