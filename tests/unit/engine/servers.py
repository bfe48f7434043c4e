"""Servers that say what a test wants, on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.test_utils import TestServer

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[TestServer]:
    """Hand every request to the handler, whatever its method and path."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    server = TestServer(app)
    async with server:
        yield server


@asynccontextmanager
async def listening(
    heads: list[bytes], said: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
) -> AsyncIterator[int]:
    """Say the same to whoever connects, and keep what they sent; gives the port."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(speak, "127.0.0.1") as server:
        yield server.sockets[0].getsockname()[1]


def saying(status: int, body: bytes) -> Handler:
    """Return a handler that says this."""

    async def handler(_request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, body=body)

    return handler
