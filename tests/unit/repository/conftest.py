"""The files of the repository, for the tests that pin its properties."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root() -> Path:
    """The top folder of the checkout."""
    return Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def files(root: Path) -> list[Path]:
    """Every file that is or would be committed, relative to the root."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    names = sorted({Path(name) for name in listing.stdout.split("\0") if name})
    return [name for name in names if (root / name).is_file()]  # one deleted but not yet staged is listed too


@pytest.fixture(scope="session")
def python_files(files: list[Path]) -> list[Path]:
    """The Python files among them."""
    return [name for name in files if name.suffix == ".py"]
