from __future__ import annotations

import asyncio
import json
import socket
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given, settings
from hypothesis import strategies as st

from kvfence.engine.pair import DETAIL_LIMIT, Answer, Client, Fault, Pair, Question

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

QUESTION = Question("tiny", "a prompt", 8)


def completion(text: object = "an answer", tokens: object = 9) -> dict[str, Any]:
    return {"choices": [{"text": text, "index": 0}], "usage": {"prompt_tokens": tokens, "total_tokens": 17}}


async def well(_request: web.Request) -> web.StreamResponse:
    return web.json_response(completion())


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/v1/completions", handler)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


@asynccontextmanager
async def saying(raw: bytes, *, stay: bool = False) -> AsyncIterator[str]:
    """A server that says these bytes to whoever connects, whatever it is asked, then hangs up or stays silent."""
    over = asyncio.Event()

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(raw)
            await writer.drain()
            if stay:
                await over.wait()
        except OSError:
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(speak, "127.0.0.1") as server:
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            over.set()


def asked(place: AbstractAsyncContextManager[str], **limits: Any) -> Answer:
    async def ask() -> Answer:
        async with place as url, Client(**{"timeout_seconds": 5} | limits) as client:
            return await client.ask_one(url, QUESTION)

    return asyncio.run(ask())


def answer_of(handler: Handler, **limits: Any) -> Answer:
    return asked(serving(handler), **limits)


def answer_to(raw: bytes, *, stay: bool = False, **limits: Any) -> Answer:
    return asked(saying(raw, stay=stay), **limits)


def ok(body: bytes, *more: bytes) -> bytes:
    head = [b"HTTP/1.1 200 OK", b"Content-Type: application/json", b"Content-Length: %d" % len(body), *more]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def test_a_completion_gives_text_count_and_time() -> None:
    answer = answer_of(well)
    assert (answer.status, answer.text, answer.prompt_tokens, answer.fault) == (200, "an answer", 9, None)
    assert 0 < answer.seconds < 5


def test_both_legs_get_one_body_at_the_same_time() -> None:
    bodies: dict[str, Any] = {}

    async def ask() -> None:
        both_are_here = asyncio.Barrier(2)  # a client that asks one leg after the other never gets past it

        def leg(name: str) -> Handler:
            async def handler(request: web.Request) -> web.StreamResponse:
                bodies[name] = await request.json()
                await both_are_here.wait()
                return web.json_response(completion(name))

            return handler

        async with serving(leg("prefill")) as prefill, serving(leg("decode")) as decode, Client(5) as client:
            answer = await client.ask(Pair(prefill, decode, "10.0.0.7", 8998), QUESTION, room=2**62 + 1)
        assert (answer.prefill.text, answer.decode.text) == ("prefill", "decode")

    asyncio.run(ask())
    assert bodies["prefill"] == bodies["decode"]
    assert bodies["prefill"] == {
        "model": "tiny",
        "prompt": "a prompt",
        "max_tokens": 8,
        "temperature": 0,
        "ignore_eos": True,
        "bootstrap_host": "10.0.0.7",
        "bootstrap_port": 8998,
        "bootstrap_room": 2**62 + 1,
    }


def test_a_server_without_a_partner_gets_no_bootstrap_fields() -> None:
    seen: list[dict[str, Any]] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append(await request.json())
        return web.json_response(completion())

    answer_of(handler)
    assert not [name for name in seen[0] if name.startswith("bootstrap")]


def test_what_one_leg_does_leaves_the_other_s_answer_alone() -> None:
    async def ask() -> None:
        async with saying(b"") as prefill, serving(well) as decode, Client(5) as client:
            answer = await client.ask(Pair(prefill, decode, "127.0.0.1"), QUESTION, room=1)
        assert answer.prefill.fault is Fault.UNREACHABLE
        assert (answer.decode.fault, answer.decode.text) == (None, "an answer")

    asyncio.run(ask())


def test_a_refusal_is_an_answer_with_its_words() -> None:
    async def refuse(_request: web.Request) -> web.StreamResponse:
        return web.json_response({"message": "too long"}, status=400)

    answer = answer_of(refuse)
    assert (answer.status, answer.fault, answer.text, answer.prompt_tokens) == (400, Fault.STATUS, "", None)
    assert "too long" in answer.detail


def test_the_words_of_a_refusal_are_cut_and_made_printable() -> None:
    body = b"\x1b[2J\x00\xff" * 1000
    answer = answer_to(b"HTTP/1.1 500 No\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert answer.status == 500
    assert len(answer.detail) == DETAIL_LIMIT
    assert answer.detail.isprintable()


def test_a_success_that_is_not_200_is_no_completion() -> None:
    async def other(_request: web.Request) -> web.StreamResponse:
        return web.json_response(completion(), status=203)

    assert answer_of(other).fault is Fault.STATUS


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="no head"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{", id="no end"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{", id="no end of a chunk"),
    ],
)
def test_a_server_that_never_goes_on_is_timed_out(raw: bytes) -> None:
    answer = answer_to(raw, stay=True, timeout_seconds=0.2)
    assert answer.fault is Fault.TIMED_OUT
    assert 0.15 < answer.seconds < 2


def test_a_server_that_goes_on_without_end_but_slowly_is_timed_out() -> None:
    async def trickle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.02)

    answer = answer_of(trickle, timeout_seconds=0.3)
    assert (answer.status, answer.fault) == (200, Fault.TIMED_OUT)
    assert answer.seconds < 2


def test_a_server_that_goes_on_without_end_is_cut_at_the_limit() -> None:
    sent = 0

    async def flood(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" " * 65536)
            sent += 65536

    answer = answer_of(flood, timeout_seconds=10, body_limit=100_000)
    assert (answer.status, answer.fault, answer.text) == (200, Fault.TOO_LARGE, "")
    assert sent < 50_000_000
    assert answer.seconds < 5


def test_an_error_s_body_has_the_same_limit() -> None:
    answer = answer_to(b"HTTP/1.1 500 No\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200_000, body_limit=100_000)
    assert (answer.status, answer.fault) == (500, Fault.TOO_LARGE)


def test_a_body_of_exactly_the_limit_is_read() -> None:
    body = json.dumps(completion()).encode()
    assert answer_to(ok(body), body_limit=len(body)).fault is None
    assert answer_to(ok(body), body_limit=len(body) - 1).fault is Fault.TOO_LARGE


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"not json", id="not JSON"),
        pytest.param(b"\xff\xfe\xfd", id="not text"),
        pytest.param(b"[" * 500_000, id="nested without end"),
        pytest.param(b'{"a":' * 100_000 + b"1" + b"}" * 100_000, id="nested very deep"),
        pytest.param(b'{"usage": {"prompt_tokens": ' + b"9" * 5000 + b"}}", id="a number that Python will not read"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"null", id="null"),
        pytest.param(b"{}", id="an empty object"),
        pytest.param(b'{"choices": [], "usage": {"prompt_tokens": 3}}', id="no choice"),
        pytest.param(b'{"choices": ["x"], "usage": {"prompt_tokens": 3}}', id="a choice that is no object"),
        pytest.param(json.dumps(completion() | {"choices": [{"text": "a"}] * 2}).encode(), id="two choices"),
        pytest.param(json.dumps(completion() | {"usage": None}).encode(), id="no usage"),
        pytest.param(json.dumps(completion(text=None)).encode(), id="no text"),
        pytest.param(json.dumps(completion(tokens=None)).encode(), id="no count"),
        pytest.param(json.dumps(completion(tokens="9")).encode(), id="a count in quotes"),
        pytest.param(json.dumps(completion(tokens=9.0)).encode(), id="a count with a point"),
        pytest.param(json.dumps(completion(tokens=-1)).encode(), id="a negative count"),
        pytest.param(json.dumps(completion(tokens=True)).encode(), id="a count that is a truth value"),
    ],
)
def test_what_is_no_completion_is_malformed(body: bytes) -> None:
    answer = answer_to(ok(body))
    assert (answer.status, answer.fault, answer.text, answer.prompt_tokens) == (200, Fault.MALFORMED, "", None)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", id="another protocol"),
        pytest.param(b"HTTP/1.1 two hundred\r\n\r\n", id="a status that is no number"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", id="a header without end"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", id="a chunk without a size"),
    ],
)
def test_what_is_no_http_is_malformed_or_unreachable(raw: bytes) -> None:
    assert answer_to(raw).fault in {Fault.MALFORMED, Fault.UNREACHABLE}


@pytest.mark.parametrize("raw", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{"])
def test_a_connection_that_breaks_is_unreachable(raw: bytes) -> None:
    assert answer_to(raw).fault is Fault.UNREACHABLE


def test_a_port_where_nobody_listens_is_unreachable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        answer = asked(nullcontext(f"http://127.0.0.1:{free.getsockname()[1]}"))
    assert (answer.status, answer.fault) == (None, Fault.UNREACHABLE)


def test_a_url_that_is_none_is_malformed() -> None:
    assert asked(nullcontext("http://[")).fault is not None


def test_a_redirection_is_not_followed() -> None:
    asked = []

    async def redirect(request: web.Request) -> web.StreamResponse:
        asked.append(request.path_qs)
        raise web.HTTPTemporaryRedirect("/v1/completions?elsewhere")

    assert answer_of(redirect).status == 307
    assert asked == ["/v1/completions"]


def test_a_compressed_answer_is_not_unpacked() -> None:
    bomb = zlib.compress(json.dumps(completion("a" * 50_000_000)).encode())
    answer = answer_to(ok(bomb, b"Content-Encoding: deflate"))
    assert answer.fault is Fault.MALFORMED


def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert answer_of(well).fault is None


def test_a_cookie_is_not_given_back() -> None:
    cookies = []

    async def handler(request: web.Request) -> web.StreamResponse:
        cookies.append(dict(request.cookies))
        response = web.json_response(completion())
        response.set_cookie("who", "me")
        return response

    async def ask() -> None:
        app = web.Application()
        app.router.add_post("/v1/completions", handler)
        async with TestServer(app, host="localhost") as server, Client(5) as client:
            for _ in range(2):
                await client.ask_one(f"http://localhost:{server.port}", QUESTION)

    asyncio.run(ask())
    assert cookies == [{}, {}]


def test_each_request_has_a_connection_of_its_own() -> None:
    peers = []

    async def handler(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        peers.append(request.transport.get_extra_info("peername"))
        return web.json_response(completion())

    async def ask() -> None:
        async with serving(handler) as url, Client(5) as client:
            for _ in range(3):
                await client.ask_one(url, QUESTION)

    asyncio.run(ask())
    assert len(set(peers)) == 3


def test_half_a_surrogate_pair_in_the_text_can_still_be_printed() -> None:
    answer = answer_to(ok(b'{"choices": [{"text": "a\\ud800b"}], "usage": {"prompt_tokens": 3}}'))
    assert answer.fault is None
    assert answer.text.encode() == b"a?b"


def test_no_prompt_and_no_answer_stands_in_what_is_logged() -> None:
    secret = "4HVQ-SECRET"
    shown = repr([Question("tiny", secret, 1), Answer(200, secret, 3, 0.1, Fault.STATUS, secret)])
    assert secret not in shown


def test_a_cancelled_question_ends_both_legs_at_once() -> None:
    async def ask() -> float:
        async with saying(b"", stay=True) as url, Client(60) as client:
            asking = asyncio.create_task(client.ask(Pair(url, url, "127.0.0.1"), QUESTION, room=1))
            await asyncio.sleep(0.1)
            began = asyncio.get_running_loop().time()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            return asyncio.get_running_loop().time() - began

    assert asyncio.run(ask()) < 1


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300))
def test_whatever_stands_in_the_body_there_is_an_answer(body: bytes) -> None:
    assert answer_to(ok(body)).fault is Fault.MALFORMED


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300))
def test_whatever_comes_over_the_wire_there_is_an_answer(raw: bytes) -> None:
    assert answer_to(raw).fault is not None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["text", "prompt_tokens"]), inner),
    max_leaves=4,
)


@settings(max_examples=60, deadline=None)
@given(
    st.fixed_dictionaries({"choices": JSON | st.just([{"text": "x"}]), "usage": JSON | st.just({"prompt_tokens": 1})})
)
def test_an_answer_that_looks_like_a_completion_is_one_or_malformed(answer: dict[str, Any]) -> None:
    got = answer_to(ok(json.dumps(answer).encode()))
    if got.fault is None:
        assert type(got.prompt_tokens) is int
        assert got.text == answer["choices"][0]["text"].encode(errors="replace").decode()
    else:
        assert got.fault is Fault.MALFORMED
