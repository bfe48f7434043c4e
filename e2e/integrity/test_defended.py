"""Each defence alone, and all of them, against the attacks that each stops: B never gets what is not its own.

`test_undefended.py` is the control: what the same attacks come to with no defence on.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from e2e import progress
from e2e.conftest import Aloud
from e2e.door.engines import Injection
from e2e.integrity import table
from e2e.integrity.attacks import ATTACKS, CONTROLS, Attack
from e2e.integrity.defences import ALL, CHECKSUM, COVERAGE, SCRUBBING, STOPS, TAGGING
from e2e.integrity.outcome import Outcome, Verdict
from e2e.integrity.scene import Defence, Scene, opened

COUNTED = ("requestsFailed", "pagesRetired")
KINDS = {
    TAGGING: {"ForeignPage", "UnwrittenPage"},
    SCRUBBING: {"EmptyPage", "OtherBytes"},
    COVERAGE: {"Coverage"},
    CHECKSUM: set[str](),
    ALL: {"ForeignPage", "UnwrittenPage", "OtherBytes", "Coverage"},
}
"""What each defence of kvfence's finds."""


@dataclass(frozen=True)
class Met:
    """One attack that met a defence."""

    outcome: Outcome
    counted: int
    """By how much the counts of findings went up in both engines."""


@dataclass(frozen=True)
class Played:
    """All of them that one pair with a defence met."""

    defence: Defence
    met: dict[str, Met]
    found: Counter[str]


async def play(scene: Scene, attacks: list[Attack]) -> dict[str, Met]:
    met = {}
    for attack in attacks:
        before = _counted(scene.counts())
        outcome = await attack.play(scene, attack)
        met[attack.name] = Met(outcome, _counted(scene.counts()) - before)
    return met


def _counted(counts: dict[str, Any]) -> int:
    return sum(int(leg.get(name, 0)) for leg in counts.values() for name in COUNTED)


@pytest.fixture(scope="module", params=[ALL, TAGGING, SCRUBBING, COVERAGE, CHECKSUM], ids=lambda one: str(one.name))
def played(
    request: pytest.FixtureRequest, injection: Injection, tmp_path_factory: pytest.TempPathFactory, aloud: Aloud
) -> Played:
    """One pair with one defence, and all attacks that it stops, one after the other."""
    defence: Defence = request.param
    attacks = [*CONTROLS, *(attack for attack in ATTACKS if attack.name in STOPS[defence])]
    folder: Path = tmp_path_factory.mktemp("defended")
    with aloud(), opened(injection, folder, defence) as scene:
        met = asyncio.run(play(scene, attacks))
        found: Counter[str] = Counter()
        for leg in scene.counts().values():
            found.update(leg["found"])
        progress.say(table.show(defence.name, [(attack, met[attack.name].outcome) for attack in attacks]))
    return Played(defence, met, found)


def test_b_gets_the_right_answer_and_nothing_is_found_when_no_plant_is_armed(played: Played) -> None:
    for control in CONTROLS:
        assert played.met[control.name].outcome.verdict is Verdict.RIGHT
        assert played.met[control.name].counted == 0


def test_b_never_gets_what_is_not_its_own(played: Played) -> None:
    for name in STOPS[played.defence]:
        seen = played.met[name].outcome
        assert seen.fired, f"{name}: the plant did not act"
        assert seen.verdict not in (Verdict.LEAKED, Verdict.WRONG), f"{name}: {seen.decode.text!r}"


def test_what_was_stopped_was_counted(played: Played) -> None:
    is_ours = played.defence is not CHECKSUM  # what SGLang finds is not counted by us, nor by itself
    for name in STOPS[played.defence]:
        assert (played.met[name].counted > 0) == is_ours, name
    assert KINDS[played.defence] <= set(played.found)
