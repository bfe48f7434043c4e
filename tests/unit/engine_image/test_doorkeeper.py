"""The launcher opens the door when every process has applied the cap, and for nobody else."""

from __future__ import annotations

import base64
import json
import threading
import time
from pathlib import Path

import pytest

from kvfence_engine import doorkeeper
from kvfence_engine.control import BODY_LIMIT
from kvfence_engine.doorkeeper import Doorkeeper, Identity
from kvfence_engine.integrity.classes import Finding
from kvfence_engine.state import Door, Grant, Rank, Server
from tests.unit.engine_image.conftest import BOOT, Admit, Engine, Operator, ask, reason


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


def test_an_admission_that_could_not_be_taken_back_is_refused(
    engine: Engine, keeper: Doorkeeper, operator: Operator, admit: Admit
) -> None:
    engine.start()
    most = tuple(f"{n:064x}" for n in range(972))  # they fit, and nothing beside them
    said = keeper.admit(operator.body(admit(passes=most)))
    assert reason(said) == (400, "Malformed")
    assert "too many" in said.body["message"]
    assert engine.state.grant() == Grant()
    assert keeper.admit(operator.body(admit(passes=most[:950]))).status == 200
    keeper.blow(Finding.ESCAPED, "A" * 64, "partner " + "h" * 253 + ":65535")
    assert engine.state.grant().door is Door.TAINTED


@pytest.mark.parametrize("body", [b"", b"{}", b'{"message":"?","signature":""}', b'{"message":1}', b"[" * 100_000])
def test_a_body_that_is_no_admission_is_refused(keeper: Doorkeeper, body: bytes) -> None:
    assert reason(keeper.admit(body)) == (400, "Malformed")


# --- over HTTP ---


def test_probes_follow_the_engine_and_the_door(
    engine: Engine, keeper: Doorkeeper, port: int, operator: Operator, admit: Admit
) -> None:
    assert ask(port, "GET", "/started") == (503, {"started": False})
    engine.start()
    assert ask(port, "GET", "/started") == (200, {"started": True})
    assert ask(port, "GET", "/ready") == (503, {"ready": False})
    assert ask(port, "POST", "/admission", operator.body(admit()))[0] == 200
    assert ask(port, "GET", "/ready") == (200, {"ready": True})
    assert ask(port, "GET", "/status") == (200, json.loads(json.dumps(keeper.status())))
    keeper.shut(Door.DRAINING)
    assert ask(port, "GET", "/ready") == (503, {"ready": False})


def test_other_paths_and_huge_bodies_are_refused(port: int) -> None:
    assert ask(port, "GET", "/")[0] == 404
    assert ask(port, "POST", "/status", b"{}")[0] == 404
    assert ask(port, "POST", "/admission", length=str(BODY_LIMIT + 1))[0] == 413
    assert ask(port, "POST", "/admission", length="-1")[0] == 413
