"""Command line of the measurement."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.engine.picture import draw
from bench.engine.report import promises, report
from e2e.engines import environment

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
NUMBERS, TABLES = "engine.json", "engine.md"


def main() -> None:
    """Measure, print, write and draw; end with 1 when a promise is not kept, whatever the times are."""
    parser = argparse.ArgumentParser(prog="python -m bench.engine", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the shortest contexts, few repetitions")
    parser.add_argument("--draw", action="store_true", help="measure nothing: print and draw what is there")
    parser.add_argument("--output", type=Path, help="a folder; without it `bench/results`, and none after --quick")
    asked = parser.parse_args()
    output = asked.output or (None if asked.quick else RESULTS)
    found = json.loads(((output or RESULTS) / NUMBERS).read_text()) if asked.draw else measured(quick=asked.quick)
    sys.stdout.write(report(found))
    if output:
        output.mkdir(parents=True, exist_ok=True)
        (output / NUMBERS).write_text(json.dumps(found, indent=1) + "\n")
        (output / TABLES).write_text(report(found))
        for picture in draw(found, output):
            sys.stdout.write(f"{picture}: {picture.stat().st_size:,} bytes\n")
    if not all(promise.is_kept for promise in promises(found)):
        sys.exit(1)


def measured(*, quick: bool) -> dict[str, Any]:
    """Measure in the engine's environment, which is built when there is none yet.

    Raises:
        SystemExit: when that process fails; it has said why.
    """
    python = environment.environment() / "bin" / "python"
    path = (ROOT, ROOT / "engine_image", environment.HERE / "shim")
    settings = {"SGLANG_USE_CPU_ENGINE": "1", "PYTHONPATH": os.pathsep.join(map(str, path)), "PYTHONWARNINGS": "ignore"}
    command = [str(python), "-m", "bench.engine.measuring", *(["--quick"] if quick else [])]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, env={**os.environ, **settings})
    if done.returncode:
        sys.exit(done.returncode)
    found: dict[str, Any] = json.loads(done.stdout)
    return found
