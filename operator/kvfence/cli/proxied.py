"""HTTP to a pod's port through the API server, as `kubectl get --raw` does it: no port is opened on this machine."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kvfence.domain.asking import Fault, Reply
from kvfence.engine.web import Web

if TYPE_CHECKING:
    from kvfence.cli.kubectl import Kubectl

STATUSES = {"Unauthorized": 401, "Forbidden": 403, "NotFound": 404, "MethodNotAllowed": 405, "InternalError": 500}
"""How kubectl names the statuses that it does not print as numbers."""
WORD = re.compile(r"(?:from|to the) server \(([A-Za-z]+)\)")
SECONDS = 15.0
"""For one answer, kubectl's own start included."""


ADDRESS = "http://pod.invalid"
"""Stands for the pod: a name that no server can have, so that nobody else is ever asked."""


class Proxied(Web):
    """Asks one port of one pod as `Web` asks a server; what the address says besides its path does not matter."""

    def __init__(self, kubectl: Kubectl, namespace: str, pod: str, port: int) -> None:
        super().__init__(SECONDS)
        self._kubectl = kubectl
        self.wants_key = False
        """Whether an answer was that a key is needed, of which kubectl can send none."""
        self._base = f"/api/v1/namespaces/{namespace}/pods/{pod}:{port}/proxy"

    async def fetch(self, method: str, url: str, body: bytes | None = None, seconds: float | None = None) -> Reply:
        """Send one GET; kubectl cannot send anything else.

        Raises:
            ValueError: another method, or a body.
        """
        if method != "GET" or body is not None:
            raise ValueError("kubectl get --raw sends a GET without a body, and nothing else")
        asked = urlsplit(url)
        path = f"{self._base}{asked.path}" + (f"?{asked.query}" if asked.query else "")
        began = time.monotonic()
        said = await self._kubectl.say("get", "--raw", path, seconds=min(seconds or SECONDS, SECONDS))
        took = time.monotonic() - began
        if not said.error:
            return Reply(200, said.out, took)
        named = WORD.search(said.error)
        status = STATUSES.get(named[1]) if named and "pods/proxy" not in said.error else None  # else it is RBAC's no
        self.wants_key = self.wants_key or status in {401, 403}
        if status is not None:
            return Reply(status, b"", took)
        return Reply(None, b"", took, Fault.UNREACHABLE, said.error)
