"""Ask over HTTP, from this machine or from another network: the Service, a router, an engine, or its door.

NetworkPolicy is enforced on the stage: this machine reaches a pool's Service and not its engines. The node's own
network does reach them, since the kubelet's probes have to; so that is where an engine is asked from.
"""

from __future__ import annotations

import http.client
import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from e2e.pools import inside
from e2e.said import Said
from kvfence.engine.pair import ROOMS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CONNECT_SECONDS = 1.0
"""Whoever listens takes a connection at once. A Service with nobody behind it lets one from this machine wait."""


@dataclass(frozen=True)
class Place:
    """Something that answers HTTP."""

    name: str
    address: str
    port: int
    through: Path | None = None
    """The network to ask from; this machine's own without."""

    def ask(self, path: str, body: object = None, method: str = "", seconds: float = 60.0) -> Said:
        """Ask, and wait for all of the answer.

        Args:
            path: with its query; sent as it is.
            body: bytes as they are, anything else as JSON; none without.
            method: GET, or POST with a body, when it is empty.
            seconds: for each read.

        Raises:
            OSError: there is no connection, or no answer in time.
            http.client.HTTPException: what came is no answer.
        """
        raw = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        began = time.monotonic()
        connection = http.client.HTTPConnection(self.address, self.port, timeout=seconds)
        connection.sock = inside.connect(self.address, self.port, self.through, CONNECT_SECONDS)
        connection.sock.settimeout(seconds)
        try:
            headers = {"Content-Type": "application/json", "Connection": "close"}
            connection.request(method or ("GET" if raw is None else "POST"), path, raw, headers)
            answer = connection.getresponse()
            return Said(answer.status, answer.read().decode(errors="replace"), time.monotonic() - began)
        finally:
            connection.close()


def question(prompt_tokens: int, **fields: Any) -> dict[str, Any]:
    """Return a user's request whose prompt has so many tokens: one each character, and one to begin with."""
    body = {"model": "tiny", "prompt": "x" * (prompt_tokens - 1), "max_tokens": 4, "temperature": 0}
    return body | fields


def ask_pair(legs: Mapping[str, Place], peer: tuple[str, int], body: Mapping[str, Any]) -> dict[str, Said]:
    """Ask two engines at once for the same, as a router does; return what each said.

    Args:
        legs: the engines, by a name.
        peer: address and port where decode is to ask for the KV.
        body: of the request.

    Raises:
        OSError: an engine did not answer.
    """
    room = random.randrange(ROOMS)  # noqa: S311 - not a secret
    asked = {**body, "bootstrap_host": peer[0], "bootstrap_port": peer[1], "bootstrap_room": room}
    with ThreadPoolExecutor(len(legs)) as threads:
        answers = {name: threads.submit(leg.ask, "/v1/completions", asked) for name, leg in legs.items()}
        return {name: answer.result() for name, answer in answers.items()}
