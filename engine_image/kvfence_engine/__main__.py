"""`python3 FOLDER/kvfence_engine ...`: the launcher, from whatever folder this package was put into.

Python puts a folder that it runs first on its path. There the modules of this package would stand in the way of others
with the same name, such as `requests`; so the folder above takes its place. SGLang's processes find it on `PYTHONPATH`,
ahead of what the image has there.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

OLDEST = (3, 10)
"""Python that this package runs on; an older one cannot even read the launcher."""


def main(arguments: list[str]) -> int:
    """Run the launcher and return its status."""
    if sys.version_info < OLDEST:
        running = ".".join(map(str, sys.version_info[:2]))
        line = f"kvfence-engine: python3 is Python {running} in this image, and the oldest that will do is 3.10"
        print(line, file=sys.stderr)  # noqa: T201
        return 78  # faults.STATUS, which this Python may not be able to import
    package = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - as it was named, not what a link means
    above = os.path.dirname(package)  # noqa: PTH120
    sys.path[:] = [above, *(entry for entry in sys.path if os.path.abspath(entry) not in (package, above))]  # noqa: PTH100
    kept = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{above}{os.pathsep}{kept}" if kept else above
    status: int = import_module("kvfence_engine.launcher").main(arguments)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
