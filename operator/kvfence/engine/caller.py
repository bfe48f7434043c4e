"""Asks completions of servers that are not trusted, as JSON and as server-sent events, and hangs up where it is told.

Whatever comes back, however malformed, late, large or absent, becomes a `Heard`; only a cancelled call raises.
"""

from __future__ import annotations

import json
from dataclasses import replace

from kvfence.domain.asking import Call, Fault, Heard, Reply
from kvfence.engine.completions import Completion, completion, stream
from kvfence.engine.text import DETAIL_LIMIT, printable
from kvfence.engine.web import BODY_LIMIT, OverWeb, Web

LONGEST_SECONDS = 3600.0
"""Of one call, whatever is asked for: decode engines wait for five minutes, and no answer takes an hour."""


class Caller(OverWeb):
    """Sends calls; an async context manager, since it holds an HTTP session (see `web.Web`)."""

    def __init__(self, body_limit: int = BODY_LIMIT, api_key: str | None = None) -> None:
        super().__init__(Web(LONGEST_SECONDS, body_limit, api_key))

    async def send(self, call: Call, seconds: float) -> Heard:
        """Return what came of a POST within so many seconds, as a value whatever went wrong."""
        until = seconds if call.hang_up_after is None else min(seconds, call.hang_up_after)
        reply = await self._web.fetch("POST", call.url, json.dumps(dict(call.body)).encode(), until)
        hung_up = reply.fault is Fault.TIMED_OUT and call.hang_up_after is not None and call.hang_up_after <= seconds
        streamed = call.body.get("stream") is True
        if reply.fault is not None:
            return _broken_off(reply, streamed=streamed, hung_up=hung_up)
        if reply.status != 200:
            return _heard(reply, Completion("", error=_words(reply.body), fault=Fault.STATUS))
        if streamed and b"data:" in reply.body:
            return _heard(reply, stream(reply.body))
        try:
            return _heard(reply, completion(reply.body))
        except (ValueError, RecursionError):
            return _heard(reply, Completion("", error=_words(reply.body), fault=Fault.MALFORMED))

    async def read(self, url: str, seconds: float) -> Reply:
        """Return what came of a GET within so many seconds."""
        return await self._web.fetch("GET", url, None, seconds)


def _broken_off(reply: Reply, *, streamed: bool, hung_up: bool) -> Heard:
    """Return what had come: a marker in it has been told all the same, be it in an event or in half an answer."""
    said = stream(reply.part) if streamed and reply.part else Completion("")
    heard = _heard(reply, said)
    fault = None if hung_up else reply.fault
    return replace(heard, fault=fault, hung_up=hung_up, error=heard.error or reply.detail)


def _heard(reply: Reply, said: Completion) -> Heard:
    return Heard(
        status=reply.status,
        text=said.text,
        prompt_tokens=said.prompt_tokens,
        completion_tokens=said.completion_tokens,
        cached_tokens=said.cached_tokens,
        finish_reason=said.finish_reason,
        error=said.error,
        raw=(reply.body or reply.part).decode(errors="replace"),
        done=said.done,
        worker=reply.worker,
        seconds=reply.seconds,
        fault=said.fault,
    )


def _words(body: bytes) -> str:
    return printable(body.decode(errors="replace")[:DETAIL_LIMIT])
