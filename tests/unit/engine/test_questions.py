from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from kvfence.engine.pair import Client, Fault, Pair, PairAnswer, Question
from tests.unit.engine.servers import serving


def test_a_pass_stands_in_the_body_and_no_pass_does_not() -> None:
    assert Question("tiny", "a prompt", 8, pass_="let-me-in").body()["kvfence_pass"] == "let-me-in"
    assert "kvfence_pass" not in Question("tiny", "a prompt", 8).body()


def test_a_prompt_of_tokens_is_a_list_of_numbers() -> None:
    assert Question("tiny", (220, 221, 222), 8).body()["prompt"] == [220, 221, 222]


def test_no_token_and_no_pass_stands_in_what_is_logged() -> None:
    shown = repr(Question("tiny", (220, 221), 8, pass_="let-me-in"))
    assert "22" not in shown
    assert "let-me-in" not in shown


def test_both_legs_get_the_same_tokens_and_the_same_pass() -> None:
    bodies: list[dict[str, Any]] = []

    async def leg(request: web.Request) -> web.StreamResponse:
        bodies.append(await request.json())
        return web.json_response({"choices": [{"text": "x"}], "usage": {"prompt_tokens": 3}})

    async def ask() -> None:
        async with serving(leg) as server, Client(5) as client:
            url = str(server.make_url("")).rstrip("/")
            await client.ask(Pair(url, url, "10.0.0.7"), Question("tiny", (220, 221, 222), 1, pass_="in"), 5)

    asyncio.run(ask())
    assert [(body["prompt"], body["kvfence_pass"]) for body in bodies] == [([220, 221, 222], "in")] * 2


def test_a_question_may_have_less_time_than_the_client_allows() -> None:
    async def hang(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(1.5)
        return web.json_response({})

    async def ask() -> PairAnswer:
        async with serving(hang) as server, Client(60) as client:
            url = str(server.make_url("")).rstrip("/")
            return await client.ask(Pair(url, url, "10.0.0.7"), Question("tiny", "a", 1), 5, seconds=0.1)

    answer = asyncio.run(ask())
    assert (answer.prefill.fault, answer.decode.fault) == (Fault.TIMED_OUT, Fault.TIMED_OUT)
    assert answer.decode.seconds < 1
