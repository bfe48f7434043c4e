"""Reads the patches: what each takes away, and which tests have to notice."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

FOLDER = Path("e2e") / "red" / "defences"
"""In a checkout."""

_LINE = re.compile(r"(Defence|Test|Level): (\S.*)")
_FILE = re.compile(r"^--- a/(\S+)$", re.MULTILINE)
_TEST = re.compile(r"((?:tests|e2e)/[\w/]+/test_\w+\.py)::(test_\w+)")


class DefenceError(Exception):
    """A patch is not what it should be, or no defence has that name; the message says what to do."""


class Level(StrEnum):
    """What the tests need."""

    FAST = "fast"
    STAGE = "stage"
    """The stage, its API or real engines: minutes."""


@dataclass(frozen=True)
class NamedTest:
    """A test function; with parameters, all of its cases."""

    path: str
    function: str

    def __str__(self) -> str:
        """As pytest has it."""
        return f"{self.path}::{self.function}"


@dataclass(frozen=True)
class Defence:
    """One patch."""

    name: str
    sentence: str
    """What holds as long as the defence is there."""
    tests: tuple[NamedTest, ...]
    level: Level
    patch: str
    """The whole file; git reads over its head."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the patch changes."""
        return tuple(_FILE.findall(self.patch))


def read(path: Path) -> Defence:
    """Read a patch with its head.

    Raises:
        DefenceError: it says not what it should.
    """
    patch = path.read_text()
    head, separator, _ = patch.partition("\n\ndiff --git ")
    if not separator:
        raise DefenceError(f"{path.name}: write the head, an empty line and the output of `git diff -U1`")
    said: dict[str, list[str]] = {"Defence": [], "Test": [], "Level": []}
    for line in head.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            raise DefenceError(f"{path.name}: a line of the head is `Defence: ...`, `Test: ...` or `Level: stage`")
        said[match[1]].append(match[2])
    if len(said["Defence"]) != 1 or not said["Test"] or said["Level"] not in ([], [Level.STAGE]):
        raise DefenceError(f"{path.name}: the head has one Defence, a Test or more, and at most a `Level: stage`")
    tests = tuple(_test(path.name, text) for text in said["Test"])
    level = Level.STAGE if said["Level"] else Level.FAST
    return Defence(path.stem, said["Defence"][0], tests, level, patch)


def read_all(root: Path) -> tuple[Defence, ...]:
    """Read every defence of a checkout, by name.

    Raises:
        DefenceError: one is not what it should be, or there is none.
    """
    found = tuple(read(path) for path in sorted((root / FOLDER).glob("*.patch")))
    if not found:
        raise DefenceError(f"there is no patch in {FOLDER}")
    return found


def chosen(known: tuple[Defence, ...], names: tuple[str, ...], level: Level) -> tuple[Defence, ...]:
    """Return the defences with these names, or all of a level when there are none.

    Raises:
        DefenceError: a name is not known, or the level has none.
    """
    if unknown := sorted(set(names) - {defence.name for defence in known}):
        listed = ", ".join(defence.name for defence in known)
        raise DefenceError(f"there is no {', '.join(unknown)}; there are: {listed}")
    found = tuple(defence for defence in known if (defence.name in names if names else defence.level is level))
    if not found:
        raise DefenceError(f"no defence is of level {level}")
    return found


def _test(name: str, text: str) -> NamedTest:
    match = _TEST.fullmatch(text)
    if match is None:
        raise DefenceError(f"{name}: write a test as path/test_file.py::test_function, below tests/ or e2e/")
    return NamedTest(match[1], match[2])
