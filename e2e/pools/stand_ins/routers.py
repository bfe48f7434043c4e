"""A router's pod without smg and nginx: the two ports of the front, and a router that knows what its ConfigMap says."""

from __future__ import annotations

import json
import random
import socket
from typing import TYPE_CHECKING, Any

from e2e.pools.stand_ins import asgi
from e2e.pools.stand_ins.moments import Moment

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    from e2e.pools.stand_ins.engines import StandInEngine
    from e2e.pools.stand_ins.moments import Moments
    from e2e.pools.stand_ins.network import PodNetwork

    Answer = tuple[int, bytes]

USERS_PORT, OPERATOR_PORT, BOOTSTRAP_PORT = 8080, 8082, 8998


class StandInRouter:
    """One router pod.

    Args:
        ip: its address.
        pool: UID of the InferencePool.
        network: that has the address.
        find: returns the engine at a URL.
        moments: is told what happens.
    """

    def __init__(
        self, ip: str, pool: str, network: PodNetwork, find: Callable[[str], StandInEngine | None], moments: Moments
    ) -> None:
        self.ip = ip
        self.files: Mapping[str, str] = {"workers.json": '{"workers": []}', "models.json": "{}"}
        """Of its ConfigMap, as the kubelet brought them last."""
        self._pool = pool
        self._find = find
        self._moments = moments
        with network.inside():
            self._listening = [socket.create_server((ip, port), backlog=64) for port in (USERS_PORT, OPERATOR_PORT)]

    async def run(self, until: asyncio.Event) -> None:
        """Serve until told to stop."""
        servers = [asgi.Server(self._users), asgi.Server(self._operator)]
        for server, listening in zip(servers, self._listening, strict=True):
            await server.start(listening)
        await until.wait()
        for server in servers:
            await server.close()

    async def is_ready(self) -> bool:
        """Whether it has a healthy engine of each type."""
        return {one["worker_type"] for one in await self._workers()} == {"prefill", "decode"}

    def listed(self) -> list[dict[str, Any]]:
        """The engines that it was told of."""
        return list(json.loads(self.files["workers.json"])["workers"])

    async def _workers(self) -> list[dict[str, Any]]:
        """The engines that it has taken up."""
        found = [(one, self._find(one["url"])) for one in self.listed()]
        return [one for one, engine in found if engine is not None and await engine.is_healthy()]

    async def _operator(self, method: str, path: str, _headers: Mapping[str, str], _body: bytes) -> Answer:
        match method, path:
            case "GET", "/workers":
                return 200, json.dumps({"workers": await self._workers()}).encode()
            case "GET", "/readiness":
                return 200 if await self.is_ready() else 503, b"{}"
        return 404, b"{}"

    async def _users(self, method: str, path: str, _headers: Mapping[str, str], body: bytes) -> Answer:
        match method, path:
            case "GET", "/v1/models":
                return 200, self.files["models.json"].encode()
            case "POST", "/v1/completions":
                self._moments.seen(Moment.PROVING_FRONTS, self._pool)
                return await self._complete(json.loads(body))
            case _, "/v1/models" | "/v1/completions" | "/v1/chat/completions":
                return 405, b"{}"
        return 404, b"{}"

    async def _complete(self, fields: dict[str, Any]) -> Answer:
        """Send it to one engine of each type; what prefill refuses is refused."""
        found = {one["worker_type"]: self._find(one["url"]) for one in await self._workers()}
        prefill, decode = found.get("prefill"), found.get("decode")
        if prefill is None or decode is None:
            return 503, b"{}"
        room = random.randrange(2**63)  # noqa: S311 - not a secret
        pair = {"bootstrap_host": prefill.pod.ip, "bootstrap_port": BOOTSTRAP_PORT, "bootstrap_room": room}
        raw = json.dumps(fields | pair).encode()
        first, second = [await engine.ask("POST", "/v1/completions", raw) for engine in (prefill, decode)]
        return first if first[0] != 200 else second
