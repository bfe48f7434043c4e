"""Takes one defence out of a copy and sees whether a test notices."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from e2e import progress
from e2e.errors import StageError
from e2e.red import copies, testing
from e2e.red.defences import Level

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from e2e.red.defences import Defence, NamedTest

SECONDS = {Level.FAST: 120.0, Level.STAGE: 1200.0}
"""For the tests of one defence."""

GREEN_SECONDS = {Level.FAST: 600.0, Level.STAGE: 3600.0}
"""For all tests together, before anything is taken out."""

AT_ONCE = {Level.FAST: 2, Level.STAGE: 1}
"""Defences that are tried at the same time. There is one stage."""


class Outcome(StrEnum):
    """What came of it."""

    RED = "red"
    GREEN = "stayed green"
    STALE = "does not apply"
    BROKEN = "could not be run"


@dataclass(frozen=True)
class Result:
    """Of one defence."""

    defence: Defence
    outcome: Outcome
    red: tuple[NamedTest, ...]
    """The tests that failed."""
    seconds: float
    words: str = ""
    """What to do about it, unless a test went red."""


def make_sure_that_all_is_green(root: Path, defences: Sequence[Defence]) -> None:
    """Run all the tests once with every defence in place: what is red without a patch shows nothing with one.

    Raises:
        StageError: a test did not pass, is not there or was skipped; or the copy would not be what is tested.
    """
    level = _slowest(defences)
    tests = {test for defence in defences for test in defence.tests}
    with progress.step(f"running the {len(tests)} tests with every defence in place"), copies.copied(root) as copy:
        copies.make_sure_that_it_is_tested(copy)
        ran = testing.run(copy, tests, GREEN_SECONDS[level])
    if ran.code not in (0, 1):  # a test is not there, say, and then none is run
        raise StageError(f"without any patch the tests could not be run:\n{ran.said}")
    if wrong := sorted(str(test) for test in tests - ran.passed):
        raise StageError(f"without any patch these did not pass: {', '.join(wrong)}\n{ran.said}")


def try_all(root: Path, defences: Sequence[Defence]) -> tuple[Result, ...]:
    """Take each defence out of a copy of its own, some at the same time."""
    with ThreadPoolExecutor(AT_ONCE[_slowest(defences)]) as pool:
        return tuple(pool.map(lambda defence: _try_one(root, defence), defences))


def _slowest(defences: Sequence[Defence]) -> Level:
    return Level.STAGE if any(defence.level is Level.STAGE for defence in defences) else Level.FAST


def _try_one(root: Path, defence: Defence) -> Result:
    began = time.monotonic()
    with copies.copied(root) as copy:
        outcome, red, words = _outcome(copy, defence)
    result = Result(defence, outcome, red, time.monotonic() - began, words)
    progress.say(f"    {defence.name}: {outcome} ({progress.clock(result.seconds)})")
    return result


def _outcome(copy: Path, defence: Defence) -> tuple[Outcome, tuple[NamedTest, ...], str]:
    if why := copies.apply(copy, defence.patch):
        words = f"{why}. The code has changed: update it, as e2e/red/__init__.py says"
        return Outcome.STALE, (), words
    ran = testing.run(copy, defence.tests, SECONDS[defence.level])
    red = tuple(test for test in defence.tests if test in ran.failed)
    if ran.code == 1 and red:
        return Outcome.RED, red, ""
    if ran.code == 0:
        names = ", ".join(test.function for test in defence.tests)
        return Outcome.GREEN, (), f"nobody would notice that it is gone: {names} passed all the same"
    words = "an error before, after or instead of the test is not a failure of it; see what pytest said:"
    return Outcome.BROKEN, (), f"{words}\n{ran.said}"
