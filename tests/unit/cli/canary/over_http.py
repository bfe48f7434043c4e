"""A stand-in, sane or broken, that answers over HTTP on loopback as SGLang does; in a thread, for a whole command."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress

from aiohttp import web

from kvfence.domain.asking import Call, Fault, Heard
from kvfence.verify.canary.session import COMPLETIONS, Known
from kvfence.verify.canary.stand_in import MODEL, Shape, StandIn
from tests.unit.cli.canary.servers import info
from tests.unit.engine.servers import Handler, serving

_HANGS = 30.0
_ALONE = 2.0
"""Seconds until one leg goes on without the other."""


@contextmanager
def over_http(stand_in: StandIn) -> Iterator[tuple[str, ...]]:
    """Give the URLs of its legs."""
    loop = asyncio.new_event_loop()
    ready: list[tuple[str, ...]] = []
    up, done = threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with AsyncExitStack() as opened:
            urls, meeting = [], _Meeting()
            for leg in stand_in.target.legs:
                server = await opened.enter_async_context(serving(_answering(stand_in, leg, meeting)))
                urls.append(str(server.make_url("")).rstrip("/"))
            ready.append(tuple(urls))
            up.set()
            await done.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert up.wait(10)
    try:
        yield ready[0]
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(10)
        loop.close()


class _Meeting:
    """Lets both legs of a question begin together: the stand-in waits for no network."""

    def __init__(self) -> None:
        self._rooms: dict[object, asyncio.Event] = {}

    async def wait(self, room: object) -> None:
        there = self._rooms.pop(room, None)
        if there is not None:
            there.set()
            return
        self._rooms[room] = there = asyncio.Event()
        with suppress(TimeoutError):
            await asyncio.wait_for(there.wait(), _ALONE)


def _answering(stand_in: StandIn, leg: Known, meeting: _Meeting) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == COMPLETIONS and stand_in.shape is Shape.PAIR:
            await meeting.wait(json.loads(await request.read()).get("bootstrap_room"))
        return await _answer(stand_in, leg, request)

    return answer


async def _answer(stand_in: StandIn, leg: Known, request: web.Request) -> web.StreamResponse:
    if request.path == "/server_info":
        return web.json_response(_info(stand_in, leg))
    if request.path == "/v1/models":
        return web.json_response({"object": "list", "data": [{"id": MODEL, "owned_by": "sglang"}]})
    if request.path != COMPLETIONS:
        return web.json_response({"detail": "Not Found"}, status=404)
    body = json.loads(await request.read())
    return _said(await stand_in.send(Call(f"{leg.url}{COMPLETIONS}", body), _HANGS), body)


def _info(stand_in: StandIn, leg: Known) -> dict[str, object]:
    mode = leg.name if stand_in.shape is Shape.PAIR else "null"
    return info(
        mode,
        context_length=leg.context_length,
        max_req_input_len=leg.max_input_tokens,
        internal_states=[{"memory_usage": {"token_capacity": leg.kv_pool_tokens}}],
    )


def _said(heard: Heard, body: dict[str, object]) -> web.StreamResponse:
    if heard.fault is Fault.STATUS:
        return web.json_response({"error": {"message": heard.error}}, status=heard.status or 500)
    if heard.status is None:
        return web.json_response({"error": "the stand-in hangs"}, status=504)
    choice = {"text": heard.text, "finish_reason": heard.finish_reason}
    usage = {"prompt_tokens": heard.prompt_tokens, "completion_tokens": heard.completion_tokens}
    if body.get("stream") is not True:
        return web.json_response({"choices": [choice], "usage": usage})
    events: list[str] = [json.dumps({"choices": [choice]})] if not heard.error else [json.dumps({"error": heard.error})]
    events += [json.dumps({"choices": [], "usage": usage})] if heard.prompt_tokens is not None else []
    events += ["[DONE]"] if heard.done else []
    return web.Response(body="".join(f"data: {event}\n\n" for event in events), content_type="text/event-stream")
