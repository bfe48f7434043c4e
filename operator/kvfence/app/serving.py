"""The operator's own HTTP port: /healthz, /readyz and /metrics."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from kvfence.controller.metrics import REGISTRY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PORT = 8080


@dataclass
class Health:
    """What the probes say."""

    ready: bool = False
    """Whether it can do its work: it leads and watches, or it waits for the Lease."""


@asynccontextmanager
async def serving(health: Health, port: int = PORT) -> AsyncIterator[None]:
    """Serve while the block runs.

    Raises:
        OSError: the port is taken.
    """

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n") if health.ready else web.Response(status=503, text="not ready yet\n")

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(REGISTRY), headers={"Content-Type": CONTENT_TYPE_LATEST})

    application = web.Application()
    application.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, port=port).start()
        yield
    finally:
        await runner.cleanup()
