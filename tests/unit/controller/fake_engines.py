"""Engines without SGLang: the real door over a real shared state, and what the server would say of itself."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kvfence.domain.asking import Fault, Reply
from kvfence.engine.attestation import NONCE
from kvfence.engine.door import PORT, DoorClient
from kvfence.engine.web import Web
from kvfence_engine.doorkeeper import Doorkeeper, Identity
from kvfence_engine.integrity.classes import Finding
from kvfence_engine.integrity.tally import Kind, Tally
from kvfence_engine.state import Door, Grant, Rank, Server, SharedState

_boots = itertools.count(1)


class _State(SharedState):
    """Every process of the engine applies a cap as soon as it is written."""

    def __init__(self, descriptor: int, path: str) -> None:
        super().__init__(descriptor, path)
        del self._ranks[1:]  # to look for 255 more at each question takes most of a test's time

    def set_grant(self, grant: Grant) -> None:
        super().set_grant(grant)
        server = self.server()
        if server is None or grant.epoch <= server.epoch:
            return
        for rank in self.ranks():
            limit = min(rank.boot_input_limit, grant.cap - 6)
            self.set_rank(replace(rank, epoch=grant.epoch, input_limit=limit))
        self.set_server(replace(server, epoch=grant.epoch))


@dataclass
class FakeEngine:
    """The engine of one pod, boot after boot."""

    pool: str
    pod: str
    mode: str
    keys: Path
    pool_tokens: int
    version: str = "0.5.23"
    checksum: bool = True
    silent: bool = False
    """Whether its ports do not answer the operator."""
    unready: bool = False
    """Whether the kubelet's readiness probe fails whatever the door says."""
    starting: bool = False
    """Whether its door says that it is still starting."""
    refuses: str = ""
    """In which words it refuses every admission."""
    told: list[dict[str, Any]] = field(default_factory=list)
    """What every admission said that it was handed, in their order."""
    attests: bool = True
    """Whether its rank says anything of its defences."""
    defences: str = "Enforce"
    """In which mode they run."""
    found: dict[str, int] = field(default_factory=dict)
    """What they found, by kind."""
    repeats: bool = True
    """Whether its rank repeats the nonces of those who ask."""
    before_admission: list[str] = field(default_factory=list)
    """`boot`: it starts anew before it hears the next admission."""

    def __post_init__(self) -> None:
        self._states: list[_State] = []
        self.boot()

    def boot(self) -> None:
        """Start anew, in place: closed, with other nonces."""
        state, number = _State.create(), next(_boots)
        assert isinstance(state, _State)
        self._states.append(state)
        self._state = state
        self._keeper = Doorkeeper(state, Identity(self.pool, self.pod, self.keys), lambda: None)
        limit = min(4096, self.pool_tokens) - 6
        state.set_server(Server(1, f"http-{number}", self.version, ranks=1, serving=True))
        state.set_rank(Rank(0, 2, f"rank-{number}", self.pool_tokens, 1, limit, limit, integrity=self.integrity()))

    def integrity(self) -> dict[str, Any]:
        """What its rank says of its defences."""
        tally = Tally()
        tally.found.update({Kind(kind): count for kind, count in self.found.items()})
        if not self.attests:
            return {}
        modes = dict.fromkeys(("pageTagging", "pageScrubbing", "coverage"), self.defences)
        return {"version": "0.1.0", "selfTest": "passed", **modes, "pages": 9, **tally.as_dict()}

    def repeat(self, nonce: str) -> None:
        """Have its rank say that it has seen what an asker drew."""
        (rank,) = self._state.ranks()
        self._state.set_rank(replace(rank, attested=(*rank.attested, nonce)[-8:], integrity=self.integrity()))

    def blow(self, finding: Finding, kind: str, source: str) -> None:
        """Have its fuse blow."""
        self._keeper.blow(finding, kind, source)

    @property
    def grant(self) -> Grant:
        return self._state.grant()

    @property
    def door(self) -> str:
        return self.grant.door.value

    @property
    def is_healthy(self) -> bool:
        return not self.unready and self.grant.door in {Door.CANARY, Door.OPEN}

    def lag(self) -> None:
        """Have its rank be one that has not taken the cap yet which the door tells."""
        (rank,) = self._state.ranks()
        self._state.set_rank(replace(rank, epoch=rank.epoch - 1, input_limit=rank.boot_input_limit))

    def status(self) -> dict[str, Any]:
        early = {"started": False, "nonces": []} if self.starting else {}
        return self._keeper.status() | early

    def answer(self, method: str, port: int, target: str, body: bytes | None) -> tuple[int, dict[str, Any]]:
        path, _, query = target.partition("?")
        if (method, port, path) == ("GET", PORT, "/status"):
            return 200, self.status()
        if (method, port, path) == ("POST", PORT, "/admission"):
            return self._admit(body or b"")
        if (method, port, path) == ("GET", 30000, "/server_info"):
            if query.startswith(f"{NONCE}=") and self.repeats:
                self.repeat(query.partition("=")[2])
            return 200, {
                "version": self.version,
                "disaggregation_enable_kv_checksum": self.checksum,
                "disaggregation_mode": self.mode,
                "num_reserved_decode_tokens": 512,
                "allow_auto_truncate": False,
                "api_key": "of-the-server",
            }
        if (method, port, path) == ("GET", 30000, "/v1/models"):
            return 200, {"data": [{"id": "tiny"}]}
        return 404, {}

    def close(self) -> None:
        for state in self._states:
            os.close(int(state.path.rpartition("/")[2]))

    def _admit(self, body: bytes) -> tuple[int, dict[str, Any]]:
        if self.before_admission:
            getattr(self, self.before_admission.pop())()
        self.told.append(json.loads(base64.b64decode(json.loads(body)["message"])))
        if self.refuses:
            return 409, {"reason": "Other", "message": self.refuses}
        reply = self._keeper.admit(body)
        return reply.status, reply.body


class Wire(Web):
    """Leads requests to engines by their address; a tenth of a second each."""

    def __init__(self) -> None:
        self.engines: dict[str, FakeEngine] = {}
        self.asked: list[str] = []

    async def fetch(self, method: str, url: str, body: bytes | None = None, seconds: float | None = None) -> Reply:
        parts = urlsplit(url)
        engine = self.engines.get(parts.hostname or "")
        self.asked.append(f"{method} {url}")
        await asyncio.sleep(0.1)
        if engine is None or engine.silent:
            return Reply(None, b"", 0.1, Fault.UNREACHABLE, "no connection")
        status, said = engine.answer(method, parts.port or 0, f"{parts.path}?{parts.query}", body)
        return Reply(status, json.dumps(said).encode(), 0.1, None, "")


class Doors(DoorClient):
    """The operator's own client of doors, over the wire above."""

    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self._web = wire
