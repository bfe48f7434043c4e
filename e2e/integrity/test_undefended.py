"""With no defence of the KV on, each fault reaches user B: the control of all that stands against them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from e2e import progress
from e2e.conftest import Aloud
from e2e.door.engines import Injection
from e2e.integrity import table
from e2e.integrity.attacks import ATTACKS, CONTROLS, Attack
from e2e.integrity.outcome import Outcome, Verdict
from e2e.integrity.scene import Scene, opened

Played = dict[str, Outcome]


async def play(scene: Scene, attacks: tuple[Attack, ...]) -> Played:
    return {attack.name: await attack.play(scene, attack) for attack in attacks}


@pytest.fixture(scope="module")
def played(injection: Injection, tmp_path_factory: pytest.TempPathFactory, aloud: Aloud) -> Played:
    """Every attack on one pair, one after the other."""
    folder: Path = tmp_path_factory.mktemp("undefended")
    with aloud(), opened(injection, folder) as scene:
        seen = asyncio.run(play(scene, (*CONTROLS, *ATTACKS)))
        progress.say(table.show("no defence of the KV is on", [(one, seen[one.name]) for one in (*CONTROLS, *ATTACKS)]))
    return seen


@pytest.mark.parametrize("control", CONTROLS, ids=lambda one: one.name)
def test_b_gets_the_right_answer_when_no_plant_is_armed(played: Played, control: Attack) -> None:
    assert played[control.name].verdict is Verdict.RIGHT


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda one: one.name)
def test_b_gets_what_is_not_its_own_when_nothing_stands_against_it(played: Played, attack: Attack) -> None:
    seen = played[attack.name]
    assert seen.fired, "the plant did not act"
    assert seen.decode.status == 200
    assert seen.verdict is attack.undefended
