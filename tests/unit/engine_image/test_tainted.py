"""A boot that is tainted stays so, whatever it is told; and it is on a partner's word alone, not on a stranger's."""

from __future__ import annotations

import base64
import secrets
import threading
import time
from pathlib import Path

import pytest

from kvfence_engine import ed25519, taint
from kvfence_engine.control import BODY_LIMIT
from kvfence_engine.doorkeeper import Doorkeeper, Identity, Reply
from kvfence_engine.integrity.classes import Finding
from kvfence_engine.state import Door, Partner, SharedState
from kvfence_engine.taint import Taint
from tests.unit.engine_image.conftest import BOOT, Admit, Engine, Operator, ask, reason

Capture = pytest.CaptureFixture[str]


class Other:
    """An engine of the other leg, as this one was told of it."""

    def __init__(self) -> None:
        self._seed = secrets.token_bytes(32)
        self.key = base64.b64encode(ed25519.public_key(self._seed)).decode()
        self.partner = Partner("10.0.0.2:8901", "10.0.0.2:8998", self.key)

    def says(self, **changes: str) -> bytes:
        """Return that it is tainted."""
        fields = {"kind": "ForeignPage", "key": self.key, "pod": "pod-of-other", "pool": BOOT.pool, **changes}
        return taint.sign(Taint(**fields), self._seed)


@pytest.fixture
def other() -> Other:
    return Other()


@pytest.mark.parametrize("door", [Door.CLOSED, Door.CANARY, Door.OPEN])
def test_a_blown_fuse_shuts_any_door_for_the_rest_of_the_boot(
    engine: Engine, keeper: Doorkeeper, operator: Operator, admit: Admit, door: Door, capsys: Capture
) -> None:
    engine.start()
    assert keeper.admit(operator.body(admit(door=door))).status == 200
    keeper.blow(Finding.ESCAPED, "ForeignPage", "rank 1")
    said = keeper.status()
    assert (said["door"], said["epoch"]) == ("tainted", 1)
    assert {name: said["blown"][name] for name in ("finding", "kind", "source")} == {
        "finding": "Escaped",
        "kind": "ForeignPage",
        "source": "rank 1",
    }
    assert abs(said["blown"]["time"] - time.time()) < 60
    assert not keeper.is_open()
    assert capsys.readouterr().err == (
        "kvfence-engine: Escaped: ForeignPage, found by rank 1; this engine is closed until it is started anew\n"
    )
    for shut in (Door.CLOSED, Door.DRAINING):
        keeper.shut(shut)
        assert engine.state.grant().door is Door.TAINTED
    for epoch, wanted in ((2, Door.OPEN), (3, Door.CANARY), (4, Door.DRAINING)):
        assert reason(keeper.admit(operator.body(admit(epoch=epoch, door=wanted)))) == (409, "Final")
    assert (keeper.status()["door"], keeper.status()["blown"]) == ("tainted", said["blown"])


def test_an_engine_that_is_leaving_is_tainted_all_the_same(engine: Engine, keeper: Doorkeeper) -> None:
    keeper.shut(Door.DRAINING)
    keeper.blow(Finding.ESCAPED, "ForeignPage", "rank 0")
    assert engine.state.grant().door is Door.TAINTED


def test_what_escaped_outdoes_what_was_contained_and_nothing_else_is_said_twice(
    engine: Engine, keeper: Doorkeeper, capsys: Capture
) -> None:
    def blown() -> tuple[str, str]:
        found = engine.state.grant().blown
        assert found is not None
        return found.finding, found.kind

    keeper.blow(Finding.CONTAINED, "OtherBytes", "rank 0")
    keeper.blow(Finding.CONTAINED, "EmptyPage", "rank 1")
    assert blown() == ("Contained", "OtherBytes")
    keeper.blow(Finding.ESCAPED, "ForeignPage", "rank 1")
    for finding in (Finding.CONTAINED, Finding.ESCAPED):
        keeper.blow(finding, "HookMissing", "rank 1")
    assert blown() == ("Escaped", "ForeignPage")
    assert capsys.readouterr().err.count("\n") == 2


def test_a_taint_is_stronger_than_an_admission_on_its_way(
    engine: Engine, keeper: Doorkeeper, operator: Operator, admit: Admit
) -> None:
    engine.start()
    engine.may_apply.clear()
    time.sleep(0.05)
    replies: list[Reply] = []
    sent = threading.Thread(target=lambda: replies.append(keeper.admit(operator.body(admit()))))
    sent.start()
    while engine.state.grant().epoch == 0:
        time.sleep(0.005)
    keeper.blow(Finding.CONTAINED, "OtherBytes", "rank 0")
    engine.may_apply.set()
    sent.join()
    assert reason(replies[0]) == (409, "Final")
    assert engine.state.grant().door is Door.TAINTED
    assert engine.state.grant().blown is not None


def test_a_partner_that_is_tainted_taints_this_engine(
    engine: Engine, keeper: Doorkeeper, operator: Operator, admit: Admit, other: Other
) -> None:
    engine.start()
    assert reason(keeper.told(other.says())) == (403, "UnknownPartner"), "nobody was named yet"
    assert keeper.admit(operator.body(admit(partners=(other.partner,)))).status == 200
    assert keeper.status()["partners"] == [{"control": "10.0.0.2:8901", "peer": "10.0.0.2:8998", "key": other.key}]
    refused = {
        "Forged": Other().says(key=other.key),
        "UnknownPartner": Other().says(),
        "ForeignPool": other.says(pool="another"),
        "Malformed": b"{}",
    }
    for why, body in refused.items():
        assert reason(keeper.told(body)) == (400 if why == "Malformed" else 403, why)
    assert keeper.is_open()
    assert keeper.told(other.says()) == Reply(200, {"door": "tainted"})
    assert keeper.told(other.says()) == Reply(200, {"door": "tainted"}), "said again"
    blown = keeper.status()["blown"]
    assert (blown["finding"], blown["kind"], blown["source"]) == ("Escaped", "ForeignPage", "partner 10.0.0.2:8901")


def test_a_partner_of_an_admission_before_is_believed_no_more(
    engine: Engine, keeper: Doorkeeper, operator: Operator, admit: Admit, other: Other
) -> None:
    engine.start()
    for epoch, partners in ((1, (other.partner,)), (2, ())):
        assert keeper.admit(operator.body(admit(epoch=epoch, partners=partners))).status == 200
    assert reason(keeper.told(other.says())) == (403, "UnknownPartner")
    assert keeper.is_open()


def test_many_forged_taints_take_no_more_of_the_launcher_than_one(
    keeper: Doorkeeper, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once, most = [0], [0]

    def judge(*_: object) -> taint.Disbelieved:
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        time.sleep(0.01)
        at_once[0] -= 1
        return taint.Disbelieved("Forged", "")

    monkeypatch.setattr(taint, "judge", judge)
    threads = [threading.Thread(target=keeper.told, args=(other.says(),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_what_a_boot_says_of_itself_its_partners_believe(engine: Engine, keeper: Doorkeeper, tmp_path: Path) -> None:
    known = Partner("10.0.0.3:8901", "", keeper.status()["key"])
    said = taint.judge(keeper.taint("EmptyPage"), BOOT.pool, (known,))
    assert said == (known, Taint("EmptyPage", known.key, BOOT.pod, BOOT.pool))
    another = Doorkeeper(SharedState.create(), Identity(BOOT.pool, BOOT.pod, tmp_path), lambda: None)
    assert another.status()["key"] != known.key, "a key is drawn for each boot"
    assert isinstance(taint.judge(another.taint("EmptyPage"), BOOT.pool, (known,)), taint.Disbelieved)


def test_a_partner_s_word_comes_over_http_and_shuts_the_door(
    engine: Engine, keeper: Doorkeeper, port: int, operator: Operator, admit: Admit, other: Other
) -> None:
    engine.start()
    assert ask(port, "POST", "/admission", operator.body(admit(partners=(other.partner,))))[0] == 200
    assert ask(port, "POST", "/taint", Other().says(key=other.key)) == (
        403,
        {"reason": "Forged", "message": "the key of that engine did not make the signature"},
    )
    assert ask(port, "POST", "/taint", b"[")[0] == 400
    assert ask(port, "POST", "/taint", length=str(BODY_LIMIT + 1))[0] == 413
    assert ask(port, "GET", "/ready") == (200, {"ready": True})
    assert ask(port, "POST", "/taint", other.says()) == (200, {"door": "tainted"})
    assert ask(port, "GET", "/ready") == (503, {"ready": False})
    assert keeper.has_started()
