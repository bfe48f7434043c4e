"""The two distributions: one version, one licence, and in a wheel the package and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

import kvfence
import kvfence_engine

INFO = {"METADATA", "RECORD", "WHEEL", "licenses/LICENSE"}
PROJECTS = [
    (".", "kvfence", "operator", INFO | {"entry_points.txt"}),
    ("engine_image", "kvfence_engine", "engine_image", INFO | {"entry_points.txt"}),
]


def test_the_versions_agree() -> None:
    assert kvfence.__version__ == kvfence_engine.__version__
    assert version("kvfence") == kvfence.__version__, "run `make setup`: another version is installed in .venv"
    assert version("kvfence-engine") == kvfence_engine.__version__


def test_the_licences_are_the_same_file_twice(root: Path) -> None:
    text = (root / "LICENSE").read_text()
    assert "Apache License" in text
    assert (root / "engine_image" / "LICENSE").read_text() == text


@pytest.mark.parametrize(("project", "package", "folder", "files"), PROJECTS)
def test_a_wheel_holds_the_package_and_nothing_else(
    root: Path, tmp_path: Path, project: str, package: str, folder: str, files: set[str]
) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=root / project, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    info = f"{package}-{kvfence.__version__}.dist-info"
    source = {
        str(path.relative_to(root / folder))
        for path in (root / folder / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert f"{package}/py.typed" in source
    assert names == source | {f"{info}/{name}" for name in files}


def test_the_engine_part_needs_nothing_and_runs_on_python_3_10(root: Path) -> None:
    project = (root / "engine_image" / "pyproject.toml").read_text()
    assert re.search(r"^dependencies = \[\]", project, re.MULTILINE)
    assert re.search(r'^requires-python = ">=3\.10"', project, re.MULTILINE)
