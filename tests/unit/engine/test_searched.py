"""All that came of an answer is searched for markers, however long, broken off or hidden, and none of it is shown."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web

from kvfence.domain.asking import Call, Fault, Heard, Pair, PairAnswer, Question
from kvfence.engine.caller import Caller
from kvfence.engine.pair import Client
from kvfence.verify import judging
from kvfence.verify.canary.people import as_answer, leaks
from tests.unit.engine.servers import Handler, serving

MARKER = "QY7CARE8B4G9"
DEEP = "x" * 5_000 + MARKER


def says(body: str, status: int = 200) -> Handler:
    async def answer(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=body.encode(), status=status)

    return answer


async def breaks_off(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "100000"})
    await response.prepare(request)
    await response.write(f'{{"choices": [{{"text": "{DEEP}'.encode())
    assert request.transport is not None
    request.transport.close()
    return response


async def hangs(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(f'{{"choices": [{{"text": "{DEEP}'.encode())
    await asyncio.sleep(60)
    return response


CASES = [
    pytest.param(says(json.dumps({"error": {"message": DEEP}}), 400), Fault.STATUS, id="deep in an error"),
    pytest.param(says(f"<html>{DEEP}"), Fault.MALFORMED, id="no completion"),
    pytest.param(breaks_off, Fault.UNREACHABLE, id="an answer that breaks off"),
    pytest.param(hangs, Fault.TIMED_OUT, id="an answer that does not end"),
    pytest.param(
        says(json.dumps({"choices": [{"text": "t", "logprobs": MARKER}], "usage": {"prompt_tokens": 1}})),
        None,
        id="another field of a completion",
    ),
    pytest.param(says(DEEP + "y" * 20_000), Fault.TOO_LARGE, id="an answer that is too large"),
]


@pytest.mark.parametrize(("handler", "fault"), CASES)
def test_the_canary_finds_a_marker_wherever_it_came(handler: Handler, fault: Fault | None) -> None:
    async def ask() -> Heard:
        async with serving(handler) as server, Caller(20_000) as caller:
            return await caller.send(
                Call(f"{str(server.make_url('')).rstrip('/')}/v1/completions", {"prompt": "x"}), 0.5
            )

    heard = asyncio.run(ask())
    assert heard.fault is fault
    (line,) = leaks("question 1", [("server", heard)], {MARKER: "user A1"})
    assert line.startswith(f"{MARKER} of user A1")
    assert judging.crossed([("server", as_answer(heard))], (MARKER,)) is not None
    assert len(heard.error) <= 300, "what is shown is cut"
    assert MARKER not in repr(heard)


@pytest.mark.parametrize(("handler", "fault"), CASES)
def test_so_does_admission(handler: Handler, fault: Fault | None) -> None:
    async def ask() -> PairAnswer:
        async with serving(handler) as server, Client(0.5, 20_000) as client:
            url = str(server.make_url("")).rstrip("/")
            return await client.ask(Pair(url, url, "h"), Question("m", "p", 1), 1)

    answer = asyncio.run(ask())
    for leg in (answer.prefill, answer.decode):
        assert leg.fault is fault
        assert judging.crossed([("prefill", leg)], (MARKER,)) is not None
        assert len(leg.detail) <= 300
        assert MARKER not in repr(leg)
