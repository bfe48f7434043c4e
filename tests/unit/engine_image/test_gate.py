"""Who gets through the gate as what: passes, ids of canaries, and rooms and ids that are good for one request."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from kvfence_engine.gate import Gate, Passed
from kvfence_engine.requests import Refused, Why, names
from kvfence_engine.state import Door, Grant, SharedState

PASSES = ("one", "two", "three")
PEER = {"bootstrap_host": "10.0.0.1", "bootstrap_port": 8998}
CANARY, DRILL = "kvfence-canary-1", "kvfence-drill-Coverage-1"


class Scene:
    """A gate and what is granted."""

    def __init__(self, *, disaggregated: bool = False) -> None:
        self.state = SharedState.create()
        self.gate = Gate(self.state, disaggregated=disaggregated)
        self.stand(Door.OPEN)

    def stand(self, door: Door) -> None:
        hashes = tuple(sha256(one.encode()).hexdigest() for one in PASSES)
        epoch = self.state.grant().epoch + 1
        self.state.set_grant(Grant(door, epoch, 100, peers=("10.0.0.1:8998",), passes=hashes))

    def enter(self, **fields: Any) -> Passed | Why:
        done = self.gate.enter({"text": "a", **fields})
        return done.why if isinstance(done, Refused) else done

    def pair(self, room: int, **fields: Any) -> Passed | Why:
        return self.enter(**PEER, bootstrap_room=room, **fields)


# --- passes ---


def test_a_pass_is_good_once_while_the_door_is_open_too() -> None:
    scene = Scene()
    assert scene.enter() is Passed.USER
    assert scene.enter(kvfence_pass="one") is Passed.CANARY
    assert scene.enter(kvfence_pass="one") is Passed.USER, "used up: it goes on as anybody's"
    assert scene.enter(kvfence_pass="another") is Passed.USER
    scene.stand(Door.CANARY)
    assert scene.enter(kvfence_pass="one") is Why.NO_PASS
    assert scene.enter(kvfence_pass="two") is Passed.CANARY


@pytest.mark.parametrize("door", [Door.CLOSED, Door.DRAINING, Door.TAINTED])
def test_no_pass_opens_a_door_that_is_shut(door: Door) -> None:
    scene = Scene()
    scene.stand(door)
    assert scene.enter(kvfence_pass="one") is Why.CLOSED
    scene.stand(Door.OPEN)
    assert scene.enter(kvfence_pass="one") is Passed.CANARY, "it was not used up"


@pytest.mark.parametrize("shown", [None, 1, ["one"], {"one": 1}, "", "\ud800"])
def test_what_is_no_pass_is_none(shown: object) -> None:
    scene = Scene()
    scene.stand(Door.CANARY)
    assert scene.enter(kvfence_pass=shown) is Why.NO_PASS


# --- ids of canaries ---


@pytest.mark.parametrize("rid", [CANARY, DRILL, "kvfence-other", [CANARY], ["a", DRILL]])
def test_an_id_of_ours_needs_a_pass(rid: object) -> None:
    scene = Scene()
    assert scene.enter(rid=rid) is Why.CANARY_RID
    assert scene.enter(rid=rid, kvfence_pass="another") is Why.CANARY_RID
    scene.stand(Door.CANARY)
    assert scene.enter(rid=rid, kvfence_pass="one") is Passed.CANARY


@pytest.mark.parametrize("rid", [DRILL, [DRILL], "kvfence-drill-"])
def test_a_fault_is_asked_for_on_canary_alone(rid: object) -> None:
    scene = Scene()
    assert scene.enter(rid=rid, kvfence_pass="one") is Why.CANARY_RID
    assert scene.enter(rid=CANARY, kvfence_pass="one") is Passed.CANARY, "the pass was not used up"
    scene.stand(Door.CANARY)
    assert scene.enter(rid=rid, kvfence_pass="two") is Passed.CANARY


def test_what_sglang_made_of_a_request_is_judged_by_its_id_again() -> None:
    scene = Scene()

    def confirm(passed: Passed, rid: object) -> Why | None:
        refused = scene.gate.confirm(passed, {"rid": rid})
        return refused.why if refused else None

    assert confirm(Passed.USER, CANARY) is Why.CANARY_RID, "it came with a header, or with a field of another name"
    assert confirm(Passed.USER, [CANARY]) is Why.CANARY_RID
    assert confirm(Passed.CANARY, CANARY) is None
    assert confirm(Passed.CANARY, DRILL) is Why.CANARY_RID, "the door opened meanwhile"
    scene.stand(Door.CANARY)
    assert confirm(Passed.CANARY, DRILL) is None


# --- once ---


def test_a_room_is_good_for_one_request() -> None:
    scene = Scene(disaggregated=True)
    assert scene.pair(7) is Passed.USER
    assert scene.pair(7) is Why.SEEN_BEFORE
    assert scene.pair(8) is Passed.USER
    assert scene.enter(**{name: [value] for name, value in PEER.items()}, bootstrap_room=[7]) is Why.SEEN_BEFORE


@pytest.mark.parametrize("again", ["mine", ["mine"]])
def test_an_id_is_good_for_one_request(again: object) -> None:
    scene = Scene()
    assert scene.enter(rid="mine") is Passed.USER
    assert scene.enter(rid=again) is Why.SEEN_BEFORE
    assert scene.enter(rid="other") is Passed.USER
    assert [scene.enter(), scene.enter()] == [Passed.USER] * 2, "without an id SGLang draws one"


def test_a_room_is_no_id() -> None:
    scene = Scene(disaggregated=True)
    assert scene.pair(7, rid="8") is Passed.USER
    assert scene.pair(8, rid="7") is Passed.USER
    assert scene.pair(9, rid="8") is Why.SEEN_BEFORE


def test_what_was_used_stays_used_in_a_later_epoch() -> None:
    scene = Scene(disaggregated=True)
    assert scene.pair(7) is Passed.USER
    scene.stand(Door.CANARY)
    scene.stand(Door.OPEN)
    assert scene.pair(7) is Why.SEEN_BEFORE


def test_a_refused_request_uses_up_nothing() -> None:
    scene = Scene(disaggregated=True)
    assert scene.pair(7, rid="mine", session_params={}) is Why.INTERNAL_FIELD
    assert scene.pair(7, rid=CANARY) is Why.CANARY_RID
    scene.stand(Door.CANARY)
    assert scene.pair(7, rid="mine") is Why.NO_PASS
    scene.stand(Door.CLOSED)
    assert scene.pair(7, rid="mine", kvfence_pass="one") is Why.CLOSED
    scene.stand(Door.OPEN)
    assert scene.pair(7, rid="mine") is Passed.USER
    assert scene.pair(7, rid="free") is Why.SEEN_BEFORE
    assert scene.pair(8, rid="free") is Passed.USER, "nor does one with a used room use up its id"
    assert scene.pair(7, kvfence_pass="one") is Why.SEEN_BEFORE
    assert scene.pair(9, kvfence_pass="one") is Passed.CANARY, "nor its pass"


def test_what_is_remembered_of_a_huge_id_is_small() -> None:
    (rid,) = names({"rid": "x" * 1_000_000})
    assert (rid[0], len(rid[1])) == ("rid", 32)


def test_names_that_differ_are_remembered_as_different() -> None:
    given = ["\ud800", "\ud801", "?", "", "1", 1, "'1'", "a", "a\n", "\u00e4", "a\u0308"]
    assert len({name for one in given for name in names({"rid": one})}) == len(given)
    assert names({"rid": {"a": 1}, "bootstrap_room": None}) == []
