"""Start `kvfence --help` and `kvfence version` and bare Python in turns, and print what each took.

Not a test: a slower machine is no fault of ours. What keeps the start short is one, `tests/unit/cli/test_startup.py`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

OPERATOR = Path(__file__).resolve().parents[2] / "operator"
STARTED = {
    "python": ["-c", "pass"],
    "kvfence --help": ["-m", "kvfence.cli", "--help"],
    "kvfence version": ["-m", "kvfence.cli", "version"],
}


def main() -> None:
    """Print the median of the wall time and of the processor time, and the ratio to bare Python."""
    parser = argparse.ArgumentParser(prog="python -m tests.startup", description=__doc__)
    parser.add_argument("--runs", type=int, default=15, help="of each")
    runs = parser.parse_args().runs
    if runs < 1:
        parser.error("--runs is a number from 1")
    turns = [{name: timed(arguments) for name, arguments in STARTED.items()} for _ in range(runs)]
    bare = statistics.median(turn["python"][0] for turn in turns)
    for name in STARTED:
        wall, processor = (statistics.median(turn[name][kind] for turn in turns) for kind in (0, 1))
        sys.stdout.write(
            f"{name:<16} {wall * 1000:5.0f} ms, processor {processor * 1000:5.0f} ms, {wall / bare:4.1f} x\n"
        )


def timed(arguments: list[str]) -> tuple[float, float]:
    """Return the wall time and the processor time of one start, in seconds."""
    environment = {**os.environ, "PYTHONPATH": str(OPERATOR)}
    before, start = os.times(), time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True, env=environment)
    wall, after = time.perf_counter() - start, os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, processor


if __name__ == "__main__":
    main()
