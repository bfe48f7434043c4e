"""Each defence alone, and all of them, against the attacks that each stops: B never gets what is not its own.

`test_undefended.py` is the control: what the same attacks come to with no defence on.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from e2e import progress
from e2e.conftest import Aloud
from e2e.door.engines import Injection
from e2e.integrity import table
from e2e.integrity.attacks import ATTACKS, CONTROLS, Attack
from e2e.integrity.defences import ALL, CHECKSUM, CLOSES, COVERAGE, OPEN, SCRUBBING, STOPS, TAGGING
from e2e.integrity.outcome import Outcome, Verdict
from e2e.integrity.scene import Defence, Scene, opened

if TYPE_CHECKING:
    from collections.abc import Mapping

COUNTED = ("requestsFailed", "pagesRetired")
KINDS = {
    TAGGING: {"ForeignPage", "UnwrittenPage"},
    SCRUBBING: {"EmptyPage", "OtherBytes"},
    COVERAGE: {"Coverage"},
    CHECKSUM: set[str](),
    ALL: {"ForeignPage", "UnwrittenPage", "OtherBytes", "Coverage"},
}
"""What each defence of kvfence's finds."""
TAINTED_SECONDS = 1.0
"""Within which both engines are closed once something escaped."""


@dataclass(frozen=True)
class Met:
    """One attack that met a defence."""

    outcome: Outcome
    moved: Counter[str]
    """By how much which count of the engines went up."""
    doors: dict[str, str]
    """How they stand as soon as they stand as they should, or when `TAINTED_SECONDS` are over."""

    @property
    def counted(self) -> int:
        """Requests that were ended, and pages that nobody gets any more."""
        return sum(self.moved[name] for name in COUNTED)


@dataclass(frozen=True)
class Played:
    """All of them that one pair with a defence met."""

    defence: Defence
    met: dict[str, Met]


async def play(scene: Scene, attacks: list[Attack], closes: Mapping[str, dict[str, str]]) -> dict[str, Met]:
    met = {}
    for attack in attacks:
        before = counted(scene)
        outcome = await attack.play(scene, attack)
        doors = await asyncio.to_thread(scene.doors, closes.get(attack.name, OPEN), TAINTED_SECONDS)
        met[attack.name] = Met(outcome, counted(scene) - before, doors)
        if doors != OPEN and attack is not attacks[-1]:
            await asyncio.to_thread(scene.renew)
    return met


def counted(scene: Scene) -> Counter[str]:
    """What both engines count that only a finding moves."""
    counts: Counter[str] = Counter()
    for leg in scene.counts().values():
        counts.update({name: leg[name] for name in COUNTED})
        counts.update(leg["found"])
    return counts


@pytest.fixture(scope="module", params=[ALL, TAGGING, SCRUBBING, COVERAGE, CHECKSUM], ids=lambda one: str(one.name))
def played(
    request: pytest.FixtureRequest, injection: Injection, tmp_path_factory: pytest.TempPathFactory, aloud: Aloud
) -> Played:
    """One pair with one defence, and all attacks that it stops, one after the other."""
    defence: Defence = request.param
    attacks = [*CONTROLS, *(attack for attack in ATTACKS if attack.name in STOPS[defence])]
    folder: Path = tmp_path_factory.mktemp("defended")
    with aloud(), opened(injection, folder, defence) as scene:
        met = asyncio.run(play(scene, attacks, CLOSES.get(defence, {})))
        rows = [(attack, met[attack.name].outcome) for attack in attacks]
        progress.say(table.show(defence.name, rows, {name: one.moved for name, one in met.items()}))
    return Played(defence, met)


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
    assert KINDS[played.defence] <= {kind for met in played.met.values() for kind, count in met.moved.items() if count}


def test_both_engines_close_at_once_when_something_escaped_and_only_then(played: Played) -> None:
    closes = CLOSES.get(played.defence, {})
    for name, met in played.met.items():
        assert met.doors == closes.get(name, OPEN), name
