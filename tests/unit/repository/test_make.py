"""`make help` is complete, and a machine that cannot make the environment is told what to do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest


def make(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "--no-print-directory", *arguments]
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(command, check=False, cwd=root, env=plain, capture_output=True, text=True)


@pytest.fixture
def fresh(root: Path, tmp_path: Path) -> Path:
    """A folder with what the environment is made from, and no environment."""
    for name in (
        "Makefile",
        "requirements-dev.lock",
        "pyproject.toml",
        "engine_image/pyproject.toml",
        "operator/kvfence/__init__.py",
        "engine_image/kvfence_engine/__init__.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, tmp_path / name)
    return tmp_path


def test_help_lists_every_target(root: Path) -> None:
    rules = set(re.findall(r"^([a-z][\w-]*):(?!=)", (root / "Makefile").read_text(), re.MULTILINE))
    listed = re.findall(r"^  make (\S+) +\S.*$", make(root).stdout, re.MULTILINE)
    assert {"help", "test", "incident"} <= rules
    assert sorted(listed) == sorted(rules)


def test_every_level_of_make_test_is_in_ci(root: Path) -> None:
    assert re.search(r"^exec make .*\btest\b", (root / ".ci" / "run").read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (None, "There is no python-of-this-test here"),
        ('case "$*" in --version) echo Python 3.9.2;; *) exit 1;; esac', "is Python 3.9.2, and kvfence needs 3.11"),
        ('case "$*" in *version_info*) exit 0;; *) exit 1;; esac', "apt-get install python3-venv"),
    ],
)
def test_a_python_that_cannot_do_it_is_named(fresh: Path, script: str | None, expected: str) -> None:
    python = fresh / "python-of-this-test"
    if script is not None:
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
    done = make(fresh, "setup", f"PYTHON={python if script else python.name}")
    assert done.returncode != 0
    assert expected in done.stderr
    assert not (fresh / ".venv").exists()
