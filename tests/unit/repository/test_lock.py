"""requirements-dev.lock is what pyproject.toml asks for: nothing missing, nothing left over, everything with a hash."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ENTRY = re.compile(r"^(?P<pin>[a-z0-9-]+==\S+)(?P<rest>.*(?:\n[ #].*)*)", re.MULTILINE)


def disagreements(project: str, lock: str) -> list[str]:
    """Return where the lock is not what the project asks for.

    Args:
        project: text of pyproject.toml.
        lock: text of the lock, with uv's notes on what each pin is there for.
    """
    table = tomllib.loads(project)["project"]
    wanted = [Requirement(line) for line in table["dependencies"] + table["optional-dependencies"]["dev"]]
    entries = {canonicalize_name(m["pin"].split("==")[0]): m for m in ENTRY.finditer(lock)}
    found = [f"{name} has no hash" for name, entry in entries.items() if "--hash=sha256:" not in entry["rest"]]
    for requirement in wanted:
        entry = entries.get(canonicalize_name(requirement.name))
        if entry is None:
            found.append(f"{requirement.name} is not in the lock")
        elif not requirement.specifier.contains(entry["pin"].split("==")[1], prereleases=True):
            found.append(f"{entry['pin']} is not {requirement}")
    names = {canonicalize_name(requirement.name) for requirement in wanted}
    asked = {name for name, entry in entries.items() if f"{table['name']} (pyproject.toml)" in entry["rest"]}
    return found + [f"{name} is in the lock for a requirement that is gone" for name in sorted(asked - names)]


@pytest.fixture
def project(root: Path) -> str:
    return (root / "pyproject.toml").read_text()


@pytest.fixture
def lock(root: Path) -> str:
    return (root / "requirements-dev.lock").read_text()


def test_the_lock_agrees(project: str, lock: str) -> None:
    assert disagreements(project, lock) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"editables>=0.5"', '"editables>=5"', "is not editables>=5"),
        ('"editables>=0.5"', '"editables>=0.5", "something-new>=1"', "something-new is not in the lock"),
        ('    "editables>=0.5",\n', "", "editables is in the lock for a requirement that is gone"),
    ],
)
def test_a_changed_project_is_seen(project: str, lock: str, old: str, new: str, expected: str) -> None:
    assert old in project
    assert any(expected in line for line in disagreements(project.replace(old, new), lock))


def test_a_pin_without_hash_is_seen(project: str, lock: str) -> None:
    bare = re.sub(r"(?<=\npackaging==)(\S+) \\\n(?:    --hash=.*\n)+", r"\1\n", lock)
    assert "packaging has no hash" in disagreements(project, bare)


def test_the_lock_names_no_index(lock: str) -> None:
    assert not re.search(r"^\s*(?:-i|--index-url|--extra-index-url|--find-links)\b", lock, re.MULTILINE)
    assert "://" not in lock
