"""Gives a refusal its real status although the answer was to be a stream.

SGLang sends the head of a stream before it knows whether there will be one: an over-long prompt on `/generate` became
200 and an event that says 400. So the head of an event stream is held back until its first event is there, and if that
is an error, the client gets its status instead. The price: the head comes with the first token.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Message = MutableMapping[str, Any]
    Send = Callable[[Message], Awaitable[None]]

_ERROR = b'data: {"error"'


class HeldStream:
    """Takes the messages of one answer and sends them on, the head of a stream as late as the module says.

    Args:
        send: to the client.
        is_cut: whether nothing more may be sent on.
    """

    def __init__(self, send: Send, is_cut: Callable[[], bool]) -> None:
        self._send = send
        self._is_cut = is_cut
        self._head: Message | None = None
        self._is_stream = False
        self.began = False
        """Whether the client was sent anything."""
        self.is_whole = False
        """Whether the client was sent an answer to its end."""

    async def __call__(self, message: Message) -> None:
        """Take one message of the application."""
        if self.is_whole or self._is_cut():  # what follows the event that became the answer, or the cut
            return
        if message["type"] == "http.response.start":
            self._is_stream = _is_stream(message)
            if self._is_stream:
                self._head = message
                return
        elif self._head is not None:
            if not message.get("body") and message.get("more_body"):
                return
            status = refused_status(message.get("body", b""))
            if status is not None:
                await self._send_refusal(status, message["body"])
                return
            await self._send_on(self._head)
            self._head = None
        await self._send_on(message)

    async def cut(self, error: bytes) -> bool:
        """End a stream that has begun with an event that says why; return whether it was one. Nothing else is sent.

        Args:
            error: JSON, as SGLang has it in such an event.
        """
        if not self._is_stream:
            return False
        event = b'data: {"error": ' + error + b"}\n\n"
        await self._send({"type": "http.response.body", "body": event, "more_body": False})
        return True

    async def _send_refusal(self, status: int, event: bytes) -> None:
        self.began = self.is_whole = True
        await send_json(self._send, status, _data(event))

    async def _send_on(self, message: Message) -> None:
        self.began = True
        self.is_whole = message["type"] == "http.response.body" and not message.get("more_body")
        await self._send(message)


async def send_json(send: Send, status: int, body: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
    """Send a whole answer."""
    head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


def refused_status(event: bytes) -> int | None:
    """Return the status that an event of a stream says, none when it is not an error."""
    if not event.startswith(_ERROR):
        return None
    try:
        code = json.loads(_data(event))["error"]["code"]
    except (ValueError, KeyError, TypeError):
        return 500  # an error, whatever it is
    return code if type(code) is int and 400 <= code < 600 else 500


def _data(event: bytes) -> bytes:
    return event.split(b"\n", 1)[0].removeprefix(b"data: ")


def _is_stream(message: Message) -> bool:
    if message["status"] != 200:
        return False
    headers = {name.lower(): value for name, value in message.get("headers", ())}
    return bool(headers.get(b"content-type", b"").startswith(b"text/event-stream"))
