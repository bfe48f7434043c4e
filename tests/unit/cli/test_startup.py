"""The command line is there at once: help and version load nothing heavy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

OPERATOR = Path(__file__).resolve().parents[3] / "operator"
OPERATORS = ("kopf", "kubernetes", "prometheus_client", "torch", "sglang")
HEAVY = (*OPERATORS, "aiohttp", "cryptography", "yaml", "rich")
"""Of the operator, or needed by a command only once it runs."""

LOADED = """
import sys
from kvfence.cli.program import run
status = run(["kvfence", *sys.argv[1:]])
sys.stderr.write("\\n".join(sorted(name for name in sys.modules if "." not in name)))
sys.exit(status)
"""


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(OPERATOR)}


def loaded(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments], capture_output=True, text=True, check=True, env=environment()
    )
    return set(done.stderr.split())


@pytest.mark.parametrize("arguments", [["--help"], ["version"], ["doctor", "--help"], ["crd", "--help"]])
def test_nothing_heavy_is_loaded_before_a_command_runs(arguments: list[str]) -> None:
    modules = loaded(*arguments)
    assert "typer" in modules
    assert modules & {*HEAVY} == set()
    if arguments[0] == "--help":  # typer itself loads pydantic to read the arguments of a command
        assert "pydantic" not in modules


def test_no_command_needs_what_only_the_operator_has() -> None:
    program = (
        "import sys\n"
        f"for name in {OPERATORS}: sys.modules[name] = None\n"
        "import importlib, pkgutil, kvfence.cli\n"
        "for one in pkgutil.walk_packages(kvfence.cli.__path__, 'kvfence.cli.'):\n"
        "    if not one.name.endswith('__main__'): importlib.import_module(one.name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment()
    )
    assert (done.returncode, done.stderr) == (0, "")
