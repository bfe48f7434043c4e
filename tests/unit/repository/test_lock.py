"""The locks are what pyproject.toml and the router's list ask for: nothing missing or left over, all with hashes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ENTRY = re.compile(r"^(?P<pin>[a-z0-9-]+==\S+)(?P<rest>.*(?:\n[ #].*)*)", re.MULTILINE)

DEVELOPMENT = "requirements-dev.lock"
OPERATOR = "requirements.lock"
ROUTER = "operator/router-requirements.txt"
ROUTER_ASKS = "operator/router-requirements.in"


def disagreements(wanted: list[Requirement], asker: str, lock: str) -> list[str]:
    """Return where the lock is not what is asked for.

    Args:
        wanted: what is asked for.
        asker: how uv notes that a pin is there for one of them.
        lock: text of the lock, with uv's notes.
    """
    entries = {canonicalize_name(m["pin"].split("==")[0]): m for m in ENTRY.finditer(lock)}
    found = [f"{name} has no hash" for name, entry in entries.items() if "--hash=sha256:" not in entry["rest"]]
    for requirement in wanted:
        entry = entries.get(canonicalize_name(requirement.name))
        if entry is None:
            found.append(f"{requirement.name} is not in the lock")
        elif not requirement.specifier.contains(entry["pin"].split("==")[1], prereleases=True):
            found.append(f"{entry['pin']} is not {requirement}")
    names = {canonicalize_name(requirement.name) for requirement in wanted}
    asked = {name for name, entry in entries.items() if asker in entry["rest"]}
    return found + [f"{name} is in the lock for a requirement that is gone" for name in sorted(asked - names)]


def of_project(project: str, lock: str, *extras: str) -> list[str]:
    """Return where the lock is not what pyproject.toml asks for, with these extras."""
    table = tomllib.loads(project)["project"]
    lines = table["dependencies"] + [line for extra in extras for line in table["optional-dependencies"][extra]]
    return disagreements([Requirement(line) for line in lines], f"{table['name']} (pyproject.toml)", lock)


def of_router(asks: str, lock: str) -> list[str]:
    """Return where the router's lock is not what its list asks for."""
    lines = [line for line in asks.splitlines() if line and not line.startswith("#")]
    return disagreements([Requirement(line) for line in lines], f"-r {ROUTER_ASKS}", lock)


def pins(lock: str) -> set[str]:
    return {match["pin"] for match in ENTRY.finditer(lock)}


@pytest.fixture
def project(root: Path) -> str:
    return (root / "pyproject.toml").read_text()


@pytest.fixture
def lock(root: Path) -> str:
    return (root / DEVELOPMENT).read_text()


def test_the_lock_agrees(project: str, lock: str) -> None:
    assert of_project(project, lock, "dev", "operator") == []


def test_the_operators_image_gets_what_it_asks_for_as_it_was_tested(root: Path, project: str, lock: str) -> None:
    shipped = (root / OPERATOR).read_text()
    assert of_project(project, shipped, "operator") == []
    assert pins(shipped) - pins(lock) == set()
    assert not any(pin.startswith(("pytest==", "ruff==", "mypy==")) for pin in pins(shipped))


def test_the_routers_image_gets_what_it_asks_for(root: Path) -> None:
    asks, shipped = (root / ROUTER_ASKS).read_text(), (root / ROUTER).read_text()
    assert of_router(asks, shipped) == []
    assert re.search(r"^smg==\S+$", asks, re.MULTILINE), "one version, not a range"
    assert "is not smg==99" in "".join(of_router(re.sub("smg==.*", "smg==99", asks), shipped))
    assert "smg is in the lock for a requirement that is gone" in of_router("", shipped)


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
    assert any(expected in line for line in of_project(project.replace(old, new), lock, "dev", "operator"))


def test_a_dependency_that_is_gone_is_seen_in_the_operators_lock(root: Path, project: str) -> None:
    found = of_project(re.sub(r'    "kopf>=.*\n', "", project), (root / OPERATOR).read_text(), "operator")
    assert found == ["kopf is in the lock for a requirement that is gone"]


def test_a_pin_without_hash_is_seen(project: str, lock: str) -> None:
    bare = re.sub(r"(?<=\npackaging==)(\S+) \\\n(?:    --hash=.*\n)+", r"\1\n", lock)
    assert "packaging has no hash" in of_project(project, bare, "dev", "operator")


@pytest.mark.parametrize("name", [DEVELOPMENT, OPERATOR, ROUTER])
def test_a_lock_names_no_index(root: Path, name: str) -> None:
    text = (root / name).read_text()
    assert not re.search(r"^\s*(?:-i|--index-url|--extra-index-url|--find-links)\b", text, re.MULTILINE)
    assert "://" not in text
