"""The fuse as it is shipped, on a real pair: what is contained closes an engine the third time, and ends nothing else.

What escapes closes both engines at once; `test_defended.py` has that.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from e2e.conftest import Aloud
from e2e.door.engines import Injection
from e2e.integrity import prompts
from e2e.integrity.attacks import ANSWER_TOKENS, ATTACKS, TOKENS
from e2e.integrity.defences import ALL, OPEN
from e2e.integrity.outcome import Outcome, Verdict
from e2e.integrity.scene import CAP, Scene, opened

if TYPE_CHECKING:
    from kvfence.domain.asking import Answer

POOL = 4096
"""Tokens of decode's pool: room for all of them at once."""
OF_A_CLIENT = "tokens-differ"
"""Whoever reaches both legs can bring that about, with two prompts in one room."""
CONTAINED = "flip-arrived"
TIMES = 3
"""So many close an engine that is told nothing of its fuse."""
TAINTED_SECONDS = 1.0


@dataclass(frozen=True)
class Seen:
    """What came of it."""

    of_a_client: list[Outcome]
    doors_after_a_client: dict[str, str]
    contained: list[Outcome]
    doors: dict[str, str]
    decode: dict[str, Any]
    """What decode's launcher says."""
    ready: int
    """Status of its readiness."""
    refused: Answer
    """What one more user gets from decode."""
    running: Outcome
    """Of the user that decode answered while all that went on."""
    outlived: bool
    """Whether that answer was still going on when the engine was closed."""


@pytest.fixture(scope="module")
def seen(injection: Injection, tmp_path_factory: pytest.TempPathFactory, aloud: Aloud) -> Seen:
    folder = tmp_path_factory.mktemp("fuse")
    with aloud(), opened(injection, folder, ALL, fuse=(), decode_pool=POOL) as scene:
        return asyncio.run(played(scene))


async def played(scene: Scene) -> Seen:
    of_a_client = [await struck(scene, OF_A_CLIENT) for _ in range(TIMES + 1)]
    doors_after_a_client = scene.doors({}, 0)
    prompt, room = prompts.going_on(scene.draw(), TOKENS, scene.chance, goes_on=200), scene.room()
    running = asyncio.create_task(scene.ask(prompt, CAP - TOKENS - ANSWER_TOKENS, room))
    assert await scene.plants.wait_for("decoding", room), "the long answer never began"
    contained = [await struck(scene, CONTAINED) for _ in range(TIMES)]
    doors = await asyncio.to_thread(scene.doors, OPEN | {"decode": "tainted"}, TAINTED_SECONDS)
    outlived = not running.done()
    ready = scene.decode.tell("/ready").status
    refused = (await scene.ask(prompts.asking(scene.draw(), TOKENS, scene.chance), 1, scene.room())).decode
    status = scene.decode.status()
    return Seen(
        *(of_a_client, doors_after_a_client, contained, doors, status, ready, refused),
        *(scene.outcome(prompt, await running, room), outlived),
    )


async def struck(scene: Scene, name: str) -> Outcome:
    attack = next(one for one in ATTACKS if one.name == name)
    prompt, room = attack.prompt(scene.draw(), scene.chance), scene.room()
    with scene.plants.armed(name, room, **attack.arming):
        return scene.outcome(prompt, await scene.ask(prompt, ANSWER_TOKENS, room), room)


def test_what_a_client_can_bring_about_fails_and_closes_nothing(seen: Seen) -> None:
    assert all(one.fired and one.verdict is Verdict.FAILED for one in seen.of_a_client)
    assert seen.doors_after_a_client == OPEN


def test_what_is_contained_closes_its_engine_the_third_time_and_not_the_other(seen: Seen) -> None:
    assert all(one.fired and one.verdict is Verdict.FAILED for one in seen.contained)
    assert seen.doors == OPEN | {"decode": "tainted"}
    assert seen.ready == 503
    assert (seen.decode["blown"]["finding"], seen.decode["blown"]["kind"]) == ("Contained", "OtherBytes")


def test_a_closed_engine_takes_nothing_new_and_goes_on_with_what_it_was_answering(seen: Seen) -> None:
    assert seen.outlived, "the long answer was over before it could have been ended"
    assert seen.refused.status == 503
    assert seen.running.verdict is Verdict.RIGHT
