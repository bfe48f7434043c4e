"""FOR THE STAGE ONLY. Python runs this file by itself in each process that has this folder on `PYTHONPATH`.

It puts the stand-ins of `cpu_shim` in place before SGLang is imported. No file of SGLang is changed. Neither this
folder nor anything like it may be in an image that users get: what it replaces are parts that a GPU server really
runs.
"""

import gc
import os

if os.environ.get("SGLANG_USE_CPU_ENGINE") == "1":
    import cpu_shim  # type: ignore[import-not-found]  # in this folder, which is on the path where this runs

    # SGLang is 5,000 modules in each of three processes. Looking for garbage while they are imported, of which there
    # is none, takes a fifth of the time until a server answers.
    gc.set_threshold(20_000, 20, 50)
    cpu_shim.install()
