"""The door in SGLang's HTTP application, as ASGI middleware: outside everything that reads a body."""

from __future__ import annotations

import json
import re
import urllib.parse
from typing import TYPE_CHECKING, Any

from kvfence_engine import requests
from kvfence_engine.cutting import CutError, Cutter
from kvfence_engine.gate import PASSED, Gate, Passed
from kvfence_engine.requests import Refused, Route, Why
from kvfence_engine.streams import HeldStream, send_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from kvfence_engine.streams import Message, Send

    Receive = Callable[[], Awaitable[Message]]
    Application = Callable[[Message, Receive, Send], Coroutine[object, object, None]]

NONCE = "kvfence_nonce"
"""Of the query of `/server_info`."""
_NONCE = re.compile(r"[0-9a-fA-F]{16,64}")

BODY_LIMIT = 64 * 1024 * 1024
"""Bytes; a prompt of a million tokens has some five million, an image in it some more."""


class DoorMiddleware:
    """Lets through what `requests.route` and the gate let through.

    Args:
        app: SGLang's application.
        gate: decides.
        cutter: ends what runs when the engine is tainted.
        on_start: called once in the event loop that serves, before the first request.
        on_nonce: called with what an asker for evidence drew, before SGLang asks its ranks for their state.
    """

    def __init__(
        self,
        app: Application,
        gate: Gate,
        cutter: Cutter,
        on_start: Callable[[], None],
        on_nonce: Callable[[str], None],
    ) -> None:
        self._app = app
        self._gate = gate
        self._cutter = cutter
        self._on_start = on_start
        self._on_nonce = on_nonce

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Handle one connection of the server, or its start and end."""
        if scope["type"] == "lifespan":
            self._on_start()
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":  # nothing that the door can judge comes over one
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Message, receive: Receive, send: Send) -> None:
        match requests.route(scope["method"], scope["path"]):
            case Route.OBSERVE:
                refused = self._note_nonce(scope)
                if refused is None:
                    await self._app(scope, receive, send)
                else:
                    await _refuse(send, refused)
            case Route.HEALTH:
                await self._health(scope, receive, send)
            case Route.INFER:
                await self._infer(scope, receive, send)
            case _:
                shut = self._gate.shut_to_users()
                await _refuse(send, shut or Refused(403, Why.NO_SUCH_PATH, "this engine does not serve this path"))

    def _note_nonce(self, scope: Message) -> Refused | None:
        """Take what an asker for evidence drew; the ranks repeat it when they are asked next, which is now."""
        query = scope.get("query_string", b"").decode("latin-1")
        nonces = urllib.parse.parse_qs(query, keep_blank_values=True).get(NONCE)
        if nonces is None:
            return None
        if len(nonces) != 1 or not _NONCE.fullmatch(nonces[0]):
            return Refused(400, Why.BAD_NONCE, f"{NONCE} has from 16 up to 64 hexadecimal digits")
        self._on_nonce(nonces[0])
        return None

    async def _health(self, scope: Message, receive: Receive, send: Send) -> None:
        shut = self._gate.shut()
        if shut is not None:
            await _refuse(send, shut)
            return
        PASSED.set(Passed.HEALTH)
        await self._app(scope, receive, send)

    async def _infer(self, scope: Message, receive: Receive, send: Send) -> None:
        shut = self._gate.shut()
        if shut is not None:  # without reading a body that nobody wants
            await _refuse(send, shut)
            return
        body = await _read(scope, receive)
        if body is None:  # the client left
            return
        fields = body if isinstance(body, Refused) else _parse(body)
        passed = fields if isinstance(fields, Refused) else self._gate.enter(fields)
        if isinstance(passed, Refused):
            await _refuse(send, passed)
            return
        assert isinstance(body, bytes)
        PASSED.set(passed)
        await self._serve(scope, _replayed(body, receive), send)

    async def _serve(self, scope: Message, receive: Receive, send: Send) -> None:
        held = HeldStream(send, lambda: self._cutter.has_cut)
        try:
            await self._cutter.run(self._app(scope, receive, held))
        except CutError:
            cut = Refused(503, Why.CLOSED, "this engine was closed while it answered: an isolation defence tripped")
            if not held.began:
                await _refuse(send, cut)
            elif not held.is_whole and not await held.cut(json.dumps(_error(cut)).encode()):
                raise  # so that the server breaks the connection off: it must not look like a whole answer
        except Exception as error:
            # Raised inside a stream, where the application can no longer turn it into an answer.
            status = getattr(error, "status_code", None) or getattr(error.__cause__, "status_code", None)
            if held.began or not isinstance(status, int):
                raise
            await _refuse(send, Refused(status, Why.CLOSED, "the request was refused"))


async def _read(scope: Message, receive: Receive) -> bytes | Refused | None:
    if any(name == b"content-encoding" and value != b"identity" for name, value in scope["headers"]):
        return Refused(415, Why.ENCODED, "the body must be sent as it is, without a content encoding")
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > BODY_LIMIT:
            return Refused(413, Why.TOO_LARGE, f"the body has more than {BODY_LIMIT} bytes")
        if not message.get("more_body"):
            return b"".join(parts)


def _parse(body: bytes) -> dict[str, Any] | Refused:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    return fields if isinstance(fields, dict) else Refused(400, Why.NOT_JSON, "the body is not a JSON object")


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return what hands the body on as it came, then whatever the client does next."""
    waiting = [body]

    async def replay() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return replay


async def _refuse(send: Send, refused: Refused) -> None:
    """Answer in the form that SGLang's own errors have, so that clients and routers need to know one."""
    headers = ((b"retry-after", b"5"),) if refused.status == 503 else ()
    await send_json(send, refused.status, json.dumps(_error(refused)).encode(), headers)


def _error(refused: Refused) -> dict[str, Any]:
    return {
        "object": "error",
        "message": refused.sentence,
        "type": refused.why.value,
        "param": None,
        "code": refused.status,
    }
