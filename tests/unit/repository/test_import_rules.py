"""Each import rule of pyproject.toml can fail: import-linter is run on a copy with one forbidden import planted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LAYERS = "kvfence imports one way"
PURE = "api, domain and render are pure"
OPERATOR = "the operator imports neither"
ENGINE = "the engine's part imports neither"


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Path:
    """The two packages and their import rules, in a folder of their own."""
    shutil.copytree(root / "operator" / "kvfence", tmp_path / "kvfence")
    shutil.copytree(root / "engine_image" / "kvfence_engine", tmp_path / "kvfence_engine")
    shutil.copy(root / "pyproject.toml", tmp_path)
    return tmp_path


def broken_rules(copy: Path) -> set[str]:
    """Return which of the four rules import-linter calls broken in the copy."""
    program = "import sys; from importlinter.cli import lint_imports_command as run; sys.exit(run(['--no-cache']))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    lines = [line for line in done.stdout.splitlines() if line.endswith((" KEPT", " BROKEN"))]
    assert len(lines) == 4, done.stdout + done.stderr
    broken = {line for line in lines if line.endswith("BROKEN")}
    assert (done.returncode != 0) == bool(broken)
    return {rule for rule in (LAYERS, PURE, OPERATOR, ENGINE) for line in broken if line.startswith(rule)}


def test_the_code_as_it_is_keeps_them(copy: Path) -> None:
    assert broken_rules(copy) == set()


@pytest.mark.parametrize(
    ("package", "line", "rule"),
    [
        ("kvfence/api", "import kvfence.domain", LAYERS),
        ("kvfence/domain", "from kvfence import render", LAYERS),
        ("kvfence/render", "import kvfence.kube", LAYERS),
        ("kvfence/engine", "import kvfence.verify", LAYERS),
        ("kvfence/verify", "import kvfence.kube", LAYERS),
        ("kvfence/controller", "import kvfence.app", LAYERS),
        ("kvfence/domain", "import asyncio", PURE),
        ("kvfence/render", "from aiohttp import ClientSession", PURE),
        ("kvfence/domain", "import kopf", PURE),
        ("kvfence/app", "import kvfence_engine", OPERATOR),
        ("kvfence/verify", "from e2e import cache", OPERATOR),
        ("kvfence/kube", "import tests.conftest", OPERATOR),
        ("kvfence_engine", "import kvfence.domain", ENGINE),
        ("kvfence_engine", "import e2e", ENGINE),
    ],
)
def test_a_planted_import_breaks_its_rule(copy: Path, package: str, line: str, rule: str) -> None:
    (copy / package / "planted.py").write_text(f"{line}\n")
    assert rule in broken_rules(copy)


def test_a_package_without_a_place_breaks_the_layers(copy: Path) -> None:
    (copy / "kvfence" / "newcomer.py").write_text('"""Belongs nowhere."""\n')
    assert LAYERS in broken_rules(copy)
