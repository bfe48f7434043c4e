"""Scenes share the pages of their decode server: what an earlier one planted there counts in a later one."""

from __future__ import annotations

import asyncio
import random
import re
from typing import Self

import pytest

from e2e.engines.servers import Reached
from e2e.incident import scenario
from e2e.incident.cast import HANGING, LEAK, SCENES, SERVERS, TRUNCATED
from e2e.incident.scenario import Seen
from kvfence.engine.pair import Answer, Pair, PairAnswer, Question
from kvfence.verify import markers

SAID = re.compile(f"{re.escape(markers.LEAD)}([{markers.CHARACTERS}]{{{markers.LENGTH}}})")


class FakeClient:
    """In the place of real pairs: whoever names no marker gets the one that the decode server was last filled with."""

    def __init__(self, last: dict[str, str]) -> None:
        self.last = last  # by decode server

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def ask(self, pair: Pair, question: Question, room: int) -> PairAnswer:
        await asyncio.sleep(0)  # the other decode server's turn
        assert isinstance(question.prompt, str)
        said = SAID.findall(question.prompt)
        text = said[0] if said else self.last.get(pair.decode_url, "")
        if len(said) > 1:  # planted, not just to be copied
            self.last[pair.decode_url] = text
        tokens = len(question.prompt) + 1
        return PairAnswer(Answer(200, "", tokens, 0.0), Answer(200, text, tokens, 0.0))


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> dict[str, Seen]:
    last: dict[str, str] = {}
    monkeypatch.setattr(scenario, "Client", lambda _: FakeClient(last))
    there = [Reached(server, f"http://{server.name}", "127.0.0.1", 8998) for server in SERVERS]
    seen = asyncio.run(scenario.play_all(there, random.Random(7)))
    assert [one.scene for one in seen] == list(SCENES)
    return {one.scene.title: one for one in seen}


def test_each_scene_has_the_markers_of_its_own_users_and_of_those_before_on_the_same_decode_server(
    played: dict[str, Seen],
) -> None:
    leak, truncated, hanging = (played[scene.title].planted for scene in (LEAK, TRUNCATED, HANGING))
    assert HANGING.users == 0
    assert (len(leak), len(truncated)) == (LEAK.users, TRUNCATED.users)
    assert hanging == truncated
    assert set(leak).isdisjoint(truncated)


def test_a_marker_of_the_scene_before_is_a_leak_in_the_scene_that_plants_none(played: dict[str, Seen]) -> None:
    hanging, before = played[HANGING.title], played[TRUNCATED.title]
    assert hanging.copies
    assert [one.leaked for one in hanging.asked] == [(before.planted[-1],)] * len(HANGING.lengths)


def test_what_a_user_of_the_same_scene_left_is_a_leak(played: dict[str, Seen]) -> None:
    for scene in (LEAK, TRUNCATED):
        seen = played[scene.title]
        assert [one.tokens for one in seen.asked] == list(scene.lengths)
        assert [one.leaked for one in seen.asked] == [(seen.planted[-1],)] * len(scene.lengths)
