"""Serves an ASGI application or a plain function over HTTP, on a socket that is there already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from aiohttp import web

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable, Mapping

    Application = Callable[[Any, Any, Any], Awaitable[None]]
    Answer = tuple[int, bytes]


class Server:
    """Answers what `respond` says, from `start` to `close`.

    Args:
        respond: called with method, the path and query as they came, headers and body.
    """

    def __init__(self, respond: Callable[[str, str, Mapping[str, str], bytes], Awaitable[Answer]]) -> None:
        self._respond = respond
        self._runner = web.ServerRunner(web.Server(self._handle, access_log=None))

    async def start(self, listening: socket.socket) -> None:
        """Serve on a socket that listens."""
        await self._runner.setup()
        await web.SockSite(self._runner, listening).start()

    async def close(self) -> None:
        """Stop, and close the socket."""
        await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        body = await request.read()
        status, said = await self._respond(request.method, request.raw_path, request.headers, body)
        return web.Response(status=status, body=said, content_type="application/json")


async def ask(application: Application, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
    """Hand one request to an application and return its whole answer."""
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": unquote(path),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await application(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])
