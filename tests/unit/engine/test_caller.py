from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from kvfence.domain.asking import Call, Fault, Heard
from kvfence.engine.caller import Caller
from kvfence.engine.completions import completion, stream

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

DONE = "data: [DONE]\n\n"


def event(text: str = "", reason: str | None = None, **more: Any) -> str:
    return f"data: {json.dumps({'choices': [{'index': 0, 'text': text, 'finish_reason': reason}], **more})}\n\n"


def usage(prompt: Any = 9, completion: Any = 2, cached: Any = 4) -> dict[str, Any]:
    details = None if cached is None else {"cached_tokens": cached}
    return {"prompt_tokens": prompt, "completion_tokens": completion, "prompt_tokens_details": details}


def answered(text: str = "an answer", **more: Any) -> dict[str, Any]:
    return {"choices": [{"text": text, "index": 0, "finish_reason": "length"}], "usage": usage()} | more


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


def heard_of(
    handler: Handler, body: dict[str, Any] | None = None, seconds: float = 5, hang_up: float | None = None, **of: Any
) -> Heard:
    async def ask() -> Heard:
        async with serving(handler) as url, Caller(**of) as caller:
            return await caller.send(Call(f"{url}/v1/completions", body or {"prompt": "x"}, hang_up), seconds)

    return asyncio.run(ask())


def says(raw: str | bytes, status: int = 200, **headers: str) -> Handler:
    async def handler(_request: web.Request) -> web.StreamResponse:
        body = raw if isinstance(raw, bytes) else raw.encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(body=body, status=status, headers=named)

    return handler


def streamed(raw: str) -> Heard:
    return heard_of(says(raw), {"prompt": "x", "stream": True})


# --- JSON ---


def test_a_completion_gives_text_counts_reason_and_time() -> None:
    heard = heard_of(says(json.dumps(answered()), x_smg_routed_worker_id="http://decode-1:30000"))
    assert (heard.status, heard.text, heard.fault, heard.finish_reason) == (200, "an answer", None, "length")
    assert (heard.prompt_tokens, heard.completion_tokens, heard.cached_tokens) == (9, 2, 4)
    assert heard.worker == "http://decode-1:30000"
    assert not heard.done
    assert 0 < heard.seconds < 5


def test_what_a_server_does_not_count_is_none() -> None:
    heard = heard_of(says(json.dumps({"choices": [{"text": "t"}]})))
    assert (heard.fault, heard.text) == (None, "t")
    assert (heard.prompt_tokens, heard.completion_tokens, heard.cached_tokens, heard.finish_reason) == (None,) * 4


def test_an_error_gives_its_status_and_words() -> None:
    heard = heard_of(says('{"object":"error","message":"too long"}', 400))
    assert (heard.status, heard.fault, heard.text) == (400, Fault.STATUS, "")
    assert "too long" in heard.error


@pytest.mark.parametrize(
    "body",
    [
        "",
        "hello",
        "[]",
        "null",
        '{"choices": []}',
        '{"choices": [{"text": 7}]}',
        json.dumps(answered(usage={"prompt_tokens": "9"})),
        json.dumps(answered(usage={"prompt_tokens": True})),
        json.dumps(answered(usage={"prompt_tokens": -1})),
        json.dumps(answered(usage=[])),
        "[" * 100_000,
        '{"choices": [{"text": "t"}], "usage": {"prompt_tokens": ' + "9" * 5000 + "}}",
    ],
)
def test_what_is_no_completion_is_malformed(body: str) -> None:
    heard = heard_of(says(body))
    assert (heard.status, heard.fault, heard.text) == (200, Fault.MALFORMED, "")
    assert heard.error == body[:300], "a marker in it is seen"


def test_half_a_surrogate_pair_can_be_printed() -> None:
    assert heard_of(says('{"choices": [{"text": "a\\ud800b"}]}')).text == "a?b"


# --- streams ---


def test_a_stream_gives_the_text_of_all_events_the_counts_of_the_last_and_its_end() -> None:
    last = f"data: {json.dumps({'choices': [], 'usage': usage()})}\n\n"
    heard = streamed(event("an ") + ": a comment\n\n" + event("answer") + event("", "length") + last + DONE)
    assert (heard.text, heard.finish_reason, heard.done, heard.fault) == ("an answer", "length", True, None)
    assert (heard.prompt_tokens, heard.completion_tokens, heard.cached_tokens) == (9, 2, 4)


def test_a_stream_that_ends_without_done_says_so() -> None:
    heard = streamed(event("an answer", "stop"))
    assert (heard.text, heard.finish_reason, heard.done, heard.fault) == ("an answer", "stop", False, None)


@pytest.mark.parametrize(
    "said",
    [
        {"error": {"message": "too long", "code": 400}},
        {"error": "too long"},
        {"object": "error", "message": "too long", "code": 400},
    ],
)
def test_an_error_event_within_status_200_is_an_error(said: dict[str, Any]) -> None:
    heard = streamed(event("a") + f"event: error\ndata: {json.dumps(said)}\n\n" + DONE)
    assert (heard.status, heard.error, heard.text, heard.done) == (200, "too long", "a", True)


@pytest.mark.parametrize("said", [{"error": {}}, {"error": 7}, {"object": "error"}])
def test_an_error_event_without_words_is_an_error_too(said: dict[str, Any]) -> None:
    assert streamed(f"data: {json.dumps(said)}\n\n").error == "an error without words"


def test_an_abort_is_the_reason_to_end() -> None:
    assert streamed(event("", "abort") + DONE).finish_reason == "abort"
    heard = streamed(event("", {"type": "abort", "message": "too long", "status_code": 400}) + DONE)  # type: ignore[arg-type]
    assert (heard.finish_reason, heard.error) == ("abort", "too long")


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_lines_may_end_in_any_of_the_three_ways(ends: str) -> None:
    heard = streamed((event("an ") + event("answer") + DONE).replace("\n", ends))
    assert (heard.text, heard.done, heard.fault) == ("an answer", True, None)


@pytest.mark.parametrize("broken", ["data: {\n\n", "data: 7\n\n", 'data: {"choices": [{"text": 7}]}\n\n', "data:\n\n"])
def test_a_stream_with_a_broken_event_is_malformed_and_keeps_what_could_be_read(broken: str) -> None:
    heard = streamed(event("a ") + broken + event("b") + DONE)
    assert (heard.fault, heard.text, heard.done) == (Fault.MALFORMED, "a b", True)


def test_a_server_that_does_not_stream_is_read_all_the_same() -> None:
    heard = streamed(json.dumps(answered()))
    assert (heard.text, heard.done, heard.fault) == ("an answer", False, None)


def test_what_had_come_of_a_stream_that_hangs_is_kept() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(event("MARKER").encode())
        await asyncio.sleep(60)
        return response

    heard = heard_of(handler, {"stream": True}, seconds=0.2)
    assert (heard.status, heard.fault, heard.text, heard.hung_up) == (200, Fault.TIMED_OUT, "MARKER", False)
    left = heard_of(handler, {"stream": True}, hang_up=0.2)
    assert (left.status, left.fault, left.text, left.hung_up) == (200, None, "MARKER", True)


# --- the way there ---


def test_who_hangs_up_after_the_answer_did_not_hang_up() -> None:
    heard = heard_of(says(json.dumps(answered())), hang_up=4.0)
    assert (heard.hung_up, heard.text) == (False, "an answer")


def test_a_call_that_hangs_up_later_than_it_may_take_has_timed_out() -> None:
    async def handler(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.Response()

    heard = heard_of(handler, seconds=0.1, hang_up=5.0)
    assert (heard.hung_up, heard.fault) == (False, Fault.TIMED_OUT)


def test_an_answer_that_is_too_large_is_a_value() -> None:
    heard = heard_of(says("x" * 2000), body_limit=1000)
    assert (heard.fault, heard.text) == (Fault.TOO_LARGE, "")


def test_a_server_that_is_not_there_is_a_value() -> None:
    async def ask() -> Heard:
        async with Caller() as caller:
            return await caller.send(Call("http://127.0.0.1:9/v1/completions", {}), 5)

    heard = asyncio.run(ask())
    assert (heard.status, heard.fault) == (None, Fault.UNREACHABLE)


def test_the_key_is_sent_and_never_shown() -> None:
    seen: list[str | None] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers.get("Authorization"))
        return web.Response()

    async def ask() -> str:
        async with serving(handler) as url, Caller(api_key="sk-secret") as caller:
            heard = await caller.send(Call(f"{url}/v1/completions", {"a": 1}), 5)
            reply = await caller.read(f"{url}/metrics", 5)
            return repr((caller, heard, reply))

    assert "sk-secret" not in asyncio.run(ask())
    assert seen == ["Bearer sk-secret"] * 2


def test_an_answer_is_not_printed() -> None:
    heard = heard_of(says(json.dumps(answered("SECRET-TEXT"))))
    assert "SECRET-TEXT" not in repr(heard)


# --- hostile bytes ---


@given(st.binary(max_size=400))
def test_any_bytes_of_a_stream_become_a_value(raw: bytes) -> None:
    said = stream(b"data: " + raw)
    assert isinstance(said.text, str)
    said.text.encode()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "text", "usage", "prompt_tokens", "error", "object", "finish_reason", "message"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_any_json_becomes_a_completion_a_refusal_or_events(value: object) -> None:
    raw = json.dumps(value).encode()
    stream(b"data: " + raw + b"\n\n")
    try:
        said = completion(raw)
    except ValueError:
        return
    assert isinstance(said.text, str)
