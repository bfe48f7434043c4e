"""The operator, its admissions, the boot that they are for, and the launcher of that boot with an engine behind it."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from kvfence_engine import admission, limits
from kvfence_engine.admission import Admission, Boot
from kvfence_engine.control import Control
from kvfence_engine.doorkeeper import Doorkeeper, Identity, Reply
from kvfence_engine.state import Door, Rank, Server, SharedState

Admit = Callable[..., Admission]
BOOT = Boot("pool-uid", "pod-uid", ("n-http", "n-rank-0", "n-rank-1"), 1024)


@dataclass
class Operator:
    """Signs as the operator does."""

    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    @property
    def public(self) -> bytes:
        return self.key.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        return self.key.sign(admission.PREFIX + message)

    def body(self, admitted: Admission) -> bytes:
        message = admission.encode(admitted)
        parts = {"message": message, "signature": self.sign(message)}
        return json.dumps({name: base64.b64encode(part).decode() for name, part in parts.items()}).encode()


@pytest.fixture
def operator() -> Operator:
    return Operator()


@pytest.fixture
def admit() -> Admit:
    """Call it with what differs from an admission that fits `BOOT`."""
    fits = Admission(
        pool=BOOT.pool,
        pod=BOOT.pod,
        nonces=BOOT.nonces,
        epoch=1,
        door=Door.OPEN,
        cap=1000,
        peers=("10.0.0.1:8998",),
        passes=(),
        expires=int(time.time()) + 60,
    )
    return lambda **changes: replace(fits, **changes)


class Engine:
    """Applies caps as the engine's processes do, in a thread; can be told to wait."""

    def __init__(self, state: SharedState) -> None:
        self.state = state
        self.may_apply = threading.Event()
        self.doors: list[Door] = []
        """How the door stood while a cap was applied."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self.state.set_server(Server(1, BOOT.nonces[0], "0.5.23", ranks=2, serving=True))
        for index in (0, 1):
            self.state.set_rank(Rank(index, 2 + index, BOOT.nonces[1 + index], 1024 + index, 16, 1018, 1018))
        self.may_apply.set()
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self.may_apply.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(0.005):
            self.may_apply.wait()
            grant, server = self.state.grant(), self.state.server()
            assert server is not None
            if grant.epoch <= server.epoch:
                continue
            self.doors.append(grant.door)
            for rank in self.state.ranks():
                limit = limits.input_limit(grant.cap, 1018)
                self.state.set_rank(replace(rank, epoch=grant.epoch, input_limit=limit))
            self.state.set_server(replace(server, epoch=grant.epoch))


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine(SharedState.create())
    yield made
    made.stop()


@pytest.fixture
def keeper(engine: Engine, operator: Operator, tmp_path: Path) -> Doorkeeper:
    (tmp_path / "current").write_text(base64.b64encode(operator.public).decode() + "\n")
    (tmp_path / "..data").mkdir()
    (tmp_path / "broken").write_text("not a key")
    return Doorkeeper(engine.state, Identity(BOOT.pool, BOOT.pod, tmp_path), lambda: None)


@pytest.fixture
def port(keeper: Doorkeeper) -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = int(probe.getsockname()[1])
    Control(("127.0.0.1", free), keeper)
    return free


def ask(port: int, method: str, path: str, body: bytes | None = None, length: str = "") -> tuple[int, object]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request(method, path, body, {"Content-Length": length} if length else {})
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


def reason(reply: Reply) -> tuple[int, object]:
    return reply.status, reply.body.get("reason")
