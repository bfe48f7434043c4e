"""Runs spin: its search is a C program made from the model, which looks at every state that can be reached."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from e2e import cache, progress
from e2e.cluster import packages
from e2e.commands import run
from e2e.errors import StageError
from e2e.model import events
from e2e.model.defences import SEARCHES, Search

if TYPE_CHECKING:
    from e2e.model.events import Event

MODEL = Path(__file__).parent / "pages.pml"
PACKAGES = {"spin": "spin", "gcc": "gcc", "libc6-dev": "/usr/include/stdio.h"}
MOST_STEPS = 100_000
"""Of one way through the model; a search that needs more says so, and then it is not complete."""
MOST_MEGABYTES = 4000
WALK_STEPS = 4000
WALK_LIVES = 40
WALK_FAULTS = 7
_SECONDS = 600.0
_FLAGS = ("-w", "-O1", "-DSAFETY", f"-DMEMLIM={MOST_MEGABYTES}")
_STATES = re.compile(r"^ *(\S+) states, stored", re.MULTILINE)
_DEPTH = re.compile(r"depth reached (\d+), errors: (\d+)")
_UNREACHED = re.compile(r"^\t\S+, state \d+, \"(.*)\"$", re.MULTILINE)
_CUT_SHORT = (
    "Search not completed",
    "max search depth too small",
    "out of memory",
    "reached -DMEMLIM",
    "hash table is full",
    "Interrupted",
)


@dataclass(frozen=True)
class Found:
    """What a search came to."""

    search: Search
    states: int
    """That it stored."""
    depth: int
    """Steps of the longest way that it took; breadth first, those of the shortest way to a violation."""
    seconds: float
    violation: tuple[Event, ...]
    """The way to a violation, the violation at its end; empty when there is none, and all was looked at."""
    unreached: frozenset[str]
    """Statements of the model that were never executed, when all was looked at."""


def search_all() -> list[Found]:
    """Make all searches.

    Raises:
        StageError: spin cannot be had, or a search was not complete and found nothing.
    """
    packages.install(PACKAGES)
    programs = _programs()
    return [_search(search, programs / search.name) for search in SEARCHES]


def judge(output: str) -> tuple[int, int, bool]:
    """Return states, depth, and whether there is a violation, from what a search printed.

    Raises:
        StageError: it found nothing, but did not look at all states.
    """
    states, depth = _STATES.search(output), _DEPTH.search(output)
    if states is None or depth is None:
        raise StageError(f"the search did not say what it did: {output[-1000:]}")
    violated = depth[2] != "0"
    if not violated and (why := [cut for cut in _CUT_SHORT if cut in output]):
        raise StageError(f"the search is not complete: {', '.join(why)}")
    return int(float(states[1])), int(depth[1]), violated


def _programs() -> Path:
    """Return the folder with one program for each search; makes them when the model, or a tool, is another one."""
    versions = run("spin", "-V") + run("gcc", "--version")

    def build(folder: Path) -> None:
        with progress.step("compiling the searches of the model", "about 20 s"):
            for search in SEARCHES:
                _compile(search, folder / search.name)

    inputs: dict[str, str | Path] = {
        "model": MODEL,
        "tools": versions,
        "searches": repr([(search.name, search.shortest, search.settings()) for search in SEARCHES]),
        "flags": str(_FLAGS),
    }
    return cache.built("model", inputs, build)


def _compile(search: Search, program: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="kvfence-model-") as name:
        folder = Path(name)
        shutil.copy(MODEL, folder)
        run("spin", *search.settings(), "-a", MODEL.name, folder=folder)
        first = ("-DBFS",) if search.shortest else ()
        run("gcc", *_FLAGS, *first, "-o", str(program), "pan.c", folder=folder)


def _search(search: Search, program: Path) -> Found:
    with tempfile.TemporaryDirectory(prefix="kvfence-model-") as name:
        folder = Path(name)
        with progress.step(f"searching the model, defences on: {search.name}"):
            began = time.monotonic()
            output = _run(program, folder, f"-m{MOST_STEPS}")
            seconds = time.monotonic() - began
        states, depth, violated = judge(output)
        violation: tuple[Event, ...] = ()
        if violated:
            shutil.copy(folder / f"{MODEL.name}.trail", folder / f"{program.name}.trail")
            violation = events.read(_run(program, folder, "-r", "-n"))
    unreached = frozenset() if violated else frozenset(_UNREACHED.findall(output))
    return Found(search, states, depth, seconds, violation, unreached)


def walk(search: Search, seed: int) -> tuple[Event, ...]:
    """Return what happens on one way through the model that is chosen at random; it ends where a property is violated.

    Raises:
        StageError: spin cannot be had.
    """
    packages.install(PACKAGES)
    with tempfile.TemporaryDirectory(prefix="kvfence-model-") as name:
        where = Path(name)
        settings = [*replace(search, faults=WALK_FAULTS, false_alarms=False).settings(), f"-DLIVES={WALK_LIVES}"]
        return events.read(_run("spin", where, *settings, f"-n{seed}", f"-u{WALK_STEPS}", "-T", str(MODEL)))


def _run(program: Path | str, folder: Path, *arguments: str) -> str:
    """Run a search; its exit code says nothing that it does not print."""
    try:
        done = subprocess.run(
            [str(program), *arguments], cwd=folder, capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise StageError(f"a search of the model did not end in {_SECONDS:.0f} s") from late
    return done.stdout.decode() + done.stderr.decode()
