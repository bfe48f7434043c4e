"""The launcher opens the door when every process has applied the cap, and for nobody else."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kvfence_engine import doorkeeper, limits
from kvfence_engine.admission import Admission
from kvfence_engine.control import BODY_LIMIT, Control
from kvfence_engine.doorkeeper import Doorkeeper, Identity
from kvfence_engine.state import Door, Rank, Server, SharedState
from tests.unit.engine_image.conftest import BOOT, Operator

Admit = Callable[..., Admission]


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


def reason(reply: doorkeeper.Reply) -> tuple[int, object]:
    return reply.status, reply.body.get("reason")


def test_a_starting_engine_takes_no_admission(
    engine: Engine, keeper: Doorkeeper, operator: Operator, admit: Admit
) -> None:
    assert reason(keeper.admit(operator.body(admit()))) == (503, "NotMeasured")
    engine.state.set_server(Server(1, BOOT.nonces[0], "0.5.23", ranks=2, serving=True))
    engine.state.set_rank(Rank(0, 2, BOOT.nonces[1], 1024, 16, 1018, 1018))
    assert not keeper.has_started(), "one of two ranks is missing"
    assert reason(keeper.admit(operator.body(admit(nonces=BOOT.nonces[:2])))) == (503, "NotMeasured")
    assert keeper.status()["nonces"] == []


def test_the_door_opens_when_all_have_applied_the_cap(
    engine: Engine, keeper: Doorkeeper, operator: Operator, admit: Admit
) -> None:
    engine.start()
    assert keeper.has_started()
    assert not keeper.is_open()
    assert keeper.status()["nonces"] == list(BOOT.nonces)
    reply = keeper.admit(operator.body(admit()))
    assert (reply.status, reply.body["door"], reply.body["cap"]) == (200, "open", 1000)
    assert engine.doors == [Door.CLOSED], "it stayed closed while the cap was applied"
    assert keeper.is_open()


def test_a_status_says_whom_the_engine_may_ask_and_what_its_limit_was_before_the_cap(
    engine: Engine, keeper: Doorkeeper, operator: Operator, admit: Admit
) -> None:
    engine.start()
    assert keeper.status()["peers"] == []
    said = keeper.admit(operator.body(admit(peers=("10.0.0.1:8998", "10.0.0.2:8998")))).body
    assert said["peers"] == ["10.0.0.1:8998", "10.0.0.2:8998"]
    assert [(rank["boot_input_limit"], rank["input_limit"]) for rank in said["ranks"]] == [(1018, 994)] * 2


def test_an_admission_is_told_before_any_of_it_holds_and_a_refused_one_never(
    engine: Engine, operator: Operator, admit: Admit, tmp_path: Path
) -> None:
    (tmp_path / "current").write_text(base64.b64encode(operator.public).decode())
    epochs: list[int] = []
    identity = Identity(BOOT.pool, BOOT.pod, tmp_path)
    keeper = Doorkeeper(engine.state, identity, lambda: epochs.append(engine.state.grant().epoch))
    engine.start()
    assert keeper.admit(operator.body(admit(pod="another"))).status == 403
    assert epochs == []
    assert keeper.admit(operator.body(admit())).status == 200
    assert keeper.admit(operator.body(admit(epoch=2))).status == 200
    assert epochs == [0, 1]


def test_the_door_stays_closed_when_the_cap_is_not_applied(
    engine: Engine, keeper: Doorkeeper, operator: Operator, admit: Admit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorkeeper, "APPLY_SECONDS", 0.1)
    engine.start()
    engine.may_apply.clear()
    time.sleep(0.05)
    assert reason(keeper.admit(operator.body(admit()))) == (504, "NotApplied")
    assert engine.state.grant().door is Door.CLOSED
    engine.may_apply.set()
    assert reason(keeper.admit(operator.body(admit()))) == (409, "OldEpoch"), "an epoch is used up"
    assert keeper.admit(operator.body(admit(epoch=2))).status == 200


def test_a_lowering_leaves_the_door_open_and_a_closing_does_not_wait(
    engine: Engine, keeper: Doorkeeper, operator: Operator, admit: Admit
) -> None:
    engine.start()
    for epoch, door, cap in ((1, Door.OPEN, 1000), (2, Door.OPEN, 900), (3, Door.CLOSED, 900), (4, Door.CANARY, 900)):
        assert keeper.admit(operator.body(admit(epoch=epoch, door=door, cap=cap))).body["door"] == door.value
    assert engine.doors == [Door.CLOSED, Door.OPEN, Door.CLOSED, Door.CLOSED]


def test_a_signal_to_leave_is_stronger_than_an_admission_on_its_way(
    engine: Engine, keeper: Doorkeeper, operator: Operator, admit: Admit
) -> None:
    engine.start()
    engine.may_apply.clear()
    time.sleep(0.05)
    replies: list[doorkeeper.Reply] = []
    sent = threading.Thread(target=lambda: replies.append(keeper.admit(operator.body(admit()))))
    sent.start()
    while engine.state.grant().epoch == 0:
        time.sleep(0.005)
    keeper.shut(Door.DRAINING)
    engine.may_apply.set()
    sent.join()
    assert reason(replies[0]) == (409, "Final")
    assert engine.state.grant().door is Door.DRAINING
    keeper.shut(Door.CLOSED)
    assert engine.state.grant().door is Door.DRAINING


def test_keys_are_read_anew_for_each_admission(
    engine: Engine, keeper: Doorkeeper, operator: Operator, admit: Admit, tmp_path: Path
) -> None:
    engine.start()
    new = Operator()
    assert reason(keeper.admit(new.body(admit()))) == (403, "Forged")
    (tmp_path / "next").write_text(base64.b64encode(new.public).decode())
    assert keeper.admit(new.body(admit())).status == 200
    assert keeper.admit(operator.body(admit(epoch=2))).status == 200
    for path in ("current", "next"):
        (tmp_path / path).unlink()
    assert reason(keeper.admit(new.body(admit(epoch=3)))) == (403, "NoKeys")


@pytest.mark.parametrize("body", [b"", b"{}", b'{"message":"?","signature":""}', b'{"message":1}', b"[" * 100_000])
def test_a_body_that_is_no_admission_is_refused(keeper: Doorkeeper, body: bytes) -> None:
    assert reason(keeper.admit(body)) == (400, "Malformed")


# --- over HTTP ---


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


def test_probes_follow_the_engine_and_the_door(
    engine: Engine, keeper: Doorkeeper, port: int, operator: Operator, admit: Admit
) -> None:
    assert ask(port, "GET", "/started") == (503, {"started": False})
    engine.start()
    assert ask(port, "GET", "/started") == (200, {"started": True})
    assert ask(port, "GET", "/ready") == (503, {"ready": False})
    assert ask(port, "POST", "/admission", operator.body(admit()))[0] == 200
    assert ask(port, "GET", "/ready") == (200, {"ready": True})
    assert ask(port, "GET", "/status") == (200, keeper.status())
    keeper.shut(Door.DRAINING)
    assert ask(port, "GET", "/ready") == (503, {"ready": False})


def test_other_paths_and_huge_bodies_are_refused(port: int) -> None:
    assert ask(port, "GET", "/")[0] == 404
    assert ask(port, "POST", "/status", b"{}")[0] == 404
    assert ask(port, "POST", "/admission", length=str(BODY_LIMIT + 1))[0] == 413
    assert ask(port, "POST", "/admission", length="-1")[0] == 413
