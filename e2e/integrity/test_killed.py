"""Prefill is killed at each step of a transfer: B gets an error, nothing of another's, and the pair goes on.

A dead partner says nothing about an engine: nothing is found, and no fuse is blown.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from e2e.conftest import Aloud
from e2e.door.engines import Engine, Injection
from e2e.integrity import prompts
from e2e.integrity.attacks import ANSWER_TOKENS, TOKENS
from e2e.integrity.defences import ALL
from e2e.integrity.outcome import Outcome, Verdict
from e2e.integrity.scene import Scene, opened

if TYPE_CHECKING:
    from kvfence.engine.pair import PairAnswer

KILLS = (
    ("between-chunks", "before-handshake"),
    ("before-metadata", "before-forward"),
    ("after-metadata", "in-forward"),
)
"""Two requests each: one whose sending stops, and one with which prefill's scheduler does."""
STEPS = [step for kill in KILLS for step in kill]
POOL = 4096
"""Tokens of decode's pool: it holds the cap even when pages of each request under way are not to be had again."""
IN_PARTS = replace(ALL, name="all defences, prompts in parts", sglang=(*ALL.sglang, "--chunked-prefill-size", "128"))


@dataclass(frozen=True)
class Killed:
    """What came of one kill."""

    outcomes: dict[str, Outcome]
    """Of the requests under way, by step."""
    after: Outcome
    """Of the next user, once prefill is there again."""
    decode: dict[str, Any]
    """What decode's launcher says after that."""
    used: int
    """Tokens of decode's pool that somebody holds after that."""


async def killed(scene: Scene, steps: tuple[str, ...]) -> Killed:
    under_way = {}
    for step in steps:
        room, prompt = scene.room(), prompts.asking(scene.draw(), TOKENS, scene.chance)
        with scene.plants.armed(step, room):
            under_way[step] = room, prompt, asyncio.create_task(scene.ask(prompt, ANSWER_TOKENS, room))
            await scene.plants.wait_for("fired", room)
    kill(scene.prefill)
    outcomes = {step: scene.outcome(prompt, await asked, room) for step, (room, prompt, asked) in under_way.items()}
    await asyncio.to_thread(scene.renew, scene.prefill)
    prompt = prompts.asking(scene.draw(), TOKENS, scene.chance)
    answer: PairAnswer = await scene.ask(prompt, ANSWER_TOKENS, scene.room())
    return Killed(outcomes, scene.outcome(prompt, answer, 0), scene.decode.status(), used(scene.decode))


def kill(engine: Engine) -> None:
    """Kill all of it at once, as the kernel does when there is no memory left."""
    status = engine.status()
    for pid in (engine.launcher(), status["server"]["pid"], *(rank["pid"] for rank in status["ranks"])):
        with contextlib.suppress(ProcessLookupError):  # the others go with the first
            os.kill(pid, signal.SIGKILL)


def used(engine: Engine) -> int:
    return sum(int(load["num_used_tokens"]) for load in engine.ask("/v1/loads").json["loads"])


@pytest.fixture(scope="module")
def seen(injection: Injection, tmp_path_factory: pytest.TempPathFactory, aloud: Aloud) -> list[Killed]:
    with aloud(), opened(injection, tmp_path_factory.mktemp("killed"), IN_PARTS, decode_pool=POOL) as scene:
        return asyncio.run(_all(scene))


async def _all(scene: Scene) -> list[Killed]:
    await scene.fill()
    return [await killed(scene, steps) for steps in KILLS]


@pytest.mark.parametrize("step", STEPS)
def test_b_gets_an_error_and_nothing_else(seen: list[Killed], step: str) -> None:
    outcome = next(one.outcomes[step] for one in seen if step in one.outcomes)
    assert outcome.fired, "prefill did not stop there"
    assert outcome.verdict is Verdict.FAILED, outcome.decode


def test_the_next_user_gets_the_right_answer(seen: list[Killed]) -> None:
    assert [one.after.verdict for one in seen] == [Verdict.RIGHT] * len(KILLS)


def test_nothing_is_found_and_no_fuse_is_blown(seen: list[Killed]) -> None:
    for one in seen:
        assert one.decode["ranks"][0]["integrity"]["found"] == {}
        assert one.decode["blown"] is None
        assert one.decode["door"] == "open"


def test_decode_has_its_pages_again_but_for_those_into_which_a_transfer_might_still_write(seen: list[Killed]) -> None:
    retired = [one.decode["ranks"][0]["integrity"]["pagesRetired"] for one in seen]
    assert [one.used for one in seen] == [pages * prompts.PAGE for pages in retired]
