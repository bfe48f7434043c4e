from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from kvfence.domain.asking import Fault, Reply
from kvfence.engine.web import Web, unanswered
from tests.unit.engine.servers import listening, saying, serving


@pytest.mark.parametrize(
    "path",
    [
        "/v1/models",
        "//workers",
        "/v1/../workers",
        "/./workers",
        "/%77orkers",
        "/v1/%2e%2e/workers",
        "/v1/completions/..%2f..%2fworkers",
        "/workers?a=/v1/completions",
        "/v1/completions;/../../workers",
    ],
)
def test_a_path_arrives_as_it_was_written(path: str) -> None:
    heads: list[bytes] = []

    async def ask() -> None:
        async with listening(heads) as port, Web(5) as client:
            reply = await client.fetch("POST", f"http://127.0.0.1:{port}{path}", b"{}")
        assert (reply.status, reply.fault) == (200, None)

    asyncio.run(ask())
    assert heads[0].startswith(f"POST {path} HTTP/1.1\r\n".encode())


def test_a_body_is_json_and_no_body_says_nothing_of_one() -> None:
    heads: list[bytes] = []

    async def ask() -> None:
        async with listening(heads) as port, Web(5) as client:
            await client.fetch("GET", f"http://127.0.0.1:{port}/")
            await client.fetch("POST", f"http://127.0.0.1:{port}/", b"{}")

    asyncio.run(ask())
    assert b"application/json" not in heads[0]
    assert b"Content-Type: application/json" in heads[1]


@pytest.mark.parametrize("status", [200, 204, 302, 404, 500])
def test_every_complete_answer_is_an_answer(status: int) -> None:
    async def ask() -> Reply:
        async with serving(saying(status, b"")) as server, Web(5) as client:
            return await client.fetch("GET", str(server.make_url("/")))

    reply = asyncio.run(ask())
    assert (reply.status, reply.fault) == (status, None)


def test_a_request_may_have_less_time_than_the_client_allows_and_never_more() -> None:
    async def hang(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(1.5)
        return web.Response()

    async def ask(own: float, given: float) -> Reply:
        async with serving(hang) as server, Web(own) as client:
            return await client.fetch("GET", str(server.make_url("/")), None, given)

    for own, given in ((60, 0.1), (0.1, 60)):
        reply = asyncio.run(ask(own, given))
        assert reply.fault is Fault.TIMED_OUT
        assert reply.seconds < 1


def test_no_body_stands_in_what_is_logged() -> None:
    assert "SECRET" not in repr(Reply(200, b"SECRET", 0.1, Fault.MALFORMED, "SECRET"))


@pytest.mark.parametrize("fault", list(Fault))
def test_every_fault_has_words_that_quote_nothing(fault: Fault) -> None:
    why = unanswered("GET /status", Reply(200, b"SECRET", 1.25, fault, "SECRET")).why
    assert why.startswith("GET /status: ")
    assert "SECRET" not in why


def test_a_status_that_was_not_wanted_is_named() -> None:
    assert unanswered("GET /status", Reply(502, b"", 0.1)).why == "GET /status: the answer had status 502"
