"""Plays the incident on one pair: users A leave markers, user B asks with prompts longer than prefill's KV pool."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from e2e.engines.servers import SERVED_NAME
from e2e.incident.cast import SCENES, Scene
from kvfence.engine.pair import ROOMS, Client, Pair, PairAnswer, Question
from kvfence.verify import markers

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable

    from e2e.engines.servers import Reached

PLANTED_CHARACTERS = 900
"""Of the prompts of users A: they fit into prefill's pool, one at a time."""

ANSWER_TOKENS = 24  # the rest of the lead and a whole marker are 18
TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True)
class Asked:
    """One question of user B and what came of it."""

    tokens: int
    answer: PairAnswer
    leaked: tuple[str, ...]
    """Markers of users A in what B got."""


@dataclass(frozen=True)
class Seen:
    """What one scene showed."""

    scene: Scene
    copies: bool
    """Whether the pair goes on with a marker that stands in the very prompt. If not, no leak would show either."""
    planted: tuple[str, ...]
    """The marker of each user A whose words decode's pages may hold, those of earlier scenes too."""
    asked: tuple[Asked, ...]


async def play_all(servers: Iterable[Reached], chance: random.Random) -> tuple[Seen, ...]:
    """Play every scene. Scenes that share a server go one after the other, the rest at the same time.

    Args:
        servers: all of the cast, running.
        chance: draws markers and rooms.
    """
    by_name = {one.server.name: one for one in servers}
    in_turn: dict[str, list[Scene]] = {}
    for scene in SCENES:
        in_turn.setdefault(scene.decode.name, []).append(scene)

    async def one_after_the_other(scenes: list[Scene]) -> list[Seen]:
        played: list[Seen] = []
        for scene in scenes:
            there = played[-1].planted if played else ()
            played.append(await play(scene, _pair(scene, by_name), chance, there))
        return played

    played = await asyncio.gather(*(one_after_the_other(scenes) for scenes in in_turn.values()))
    seen = {one.scene.title: one for several in played for one in several}
    return tuple(seen[scene.title] for scene in SCENES)


def _pair(scene: Scene, servers: dict[str, Reached]) -> Pair:
    prefill, decode = servers[scene.prefill.name], servers[scene.decode.name]
    return Pair(prefill.url, decode.url, prefill.bootstrap_host, prefill.bootstrap_port)


async def play(scene: Scene, pair: Pair, chance: random.Random, there: tuple[str, ...] = ()) -> Seen:
    """Play one scene on its running pair. Whatever the servers do is in the result; nothing of it raises.

    Args:
        scene: which.
        pair: where its servers are.
        chance: draws markers and rooms.
        there: markers that users A of an earlier scene left on this decode server.
    """
    own, *new = markers.draw(1 + scene.users, chance)
    planted = (*there, *new)
    async with Client(TIMEOUT_SECONDS) as client:

        async def ask(prompt: str, max_tokens: int) -> PairAnswer:
            question = Question(SERVED_NAME, prompt, max_tokens)
            return await client.ask(pair, question, chance.randrange(ROOMS))

        copied = await ask(markers.copying_prompt(own, characters=700, distance=350), len(own))
        for marker in new:  # one after the other: prefill holds one; together they fill decode's pages nearly twice
            await ask(markers.planting_prompt(marker, PLANTED_CHARACTERS), 4)
        asked = []
        for tokens in scene.lengths:
            prompt = markers.cut_asking_prompt(tokens, scene.kept) if scene.kept else markers.asking_prompt(tokens)
            answer = await ask(prompt, ANSWER_TOKENS)
            asked.append(Asked(tokens, answer, markers.found(answer.decode.text, planted)))
    return Seen(scene, copied.decode.text == own, planted, tuple(asked))
