"""Servers on loopback that say what SGLang and routers say of themselves, and complete a prompt with a dot."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.unit.engine.servers import serving

MODEL = "copy"


def info(mode: str = "null", **more: Any) -> dict[str, Any]:
    """What `/server_info` of SGLang says, as far as it is read."""
    return {
        "version": "0.5.23",
        "disaggregation_mode": mode,
        "disaggregation_bootstrap_port": 9001,
        "context_length": 4096,
        "page_size": 16,
        "max_req_input_len": 1018,
        "tp_size": 1,
        "internal_states": [{"memory_usage": {"token_capacity": 1024}, "max_req_input_len": 1018}],
        **more,
    }


@dataclass
class Server:
    """What it says, and who asked."""

    info: Mapping[str, Any] | None = None
    models: tuple[str, ...] = (MODEL,)
    workers: tuple[str, ...] | None = None
    takes_ids: bool = True
    completes: int = 200
    seen: list[tuple[str, str | None]] = field(default_factory=list)
    """Paths, each with the key that came along."""
    bodies: list[dict[str, Any]] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.seen.append((request.path, request.headers.get("Authorization")))
        if request.path == "/server_info" and self.info is not None:
            return web.json_response(self.info)
        if request.path == "/v1/models" and self.models:
            return web.json_response(
                {"object": "list", "data": [{"id": name, "owned_by": "sglang"} for name in self.models]}
            )
        if request.path == "/workers" and self.workers is not None:
            listed = [{"id": url, "url": url} for url in self.workers]
            return web.json_response({"workers": listed, "total": len(listed), "stats": {}})
        if request.path == "/v1/completions":
            return self._complete(json.loads(await request.read()))
        return web.json_response({"detail": "Not Found"}, status=404)

    def _complete(self, body: dict[str, Any]) -> web.StreamResponse:
        self.bodies.append(body)
        if self.completes != 200 or not (self.takes_ids or isinstance(body["prompt"], str)):
            return web.json_response({"error": "no"}, status=self.completes if self.completes != 200 else 400)
        usage = {"prompt_tokens": len(body["prompt"]), "completion_tokens": 1}
        return web.json_response({"choices": [{"text": ".", "finish_reason": "length"}], "usage": usage})


@asynccontextmanager
async def at(server: Server) -> AsyncIterator[str]:
    """Give the URL at which the server answers."""
    async with serving(server.answer) as running:
        yield str(running.make_url("")).rstrip("/")
