"""Faults that a canary asks for in its own pages, and the receipts of canaries, on ranks without a model."""

from __future__ import annotations

from typing import Any

import pytest

from kvfence_engine.state import Door, Grant, SharedState
from tests.unit.engine_image.hooked.fake_rank import PAGE, ROOM, Decode, Prefill, Request, modes

PROMPT = list(range(1, 3 * PAGE + 2))
ON = modes(tagging=True, scrubbing=True, coverage=True)
Metadata = tuple[Any, Any]


def state(door: Door) -> SharedState:
    shared = SharedState.create()
    shared.set_grant(Grant(door))
    return shared


def on_prefill(patch: pytest.MonkeyPatch, shared: SharedState, rid: str) -> tuple[Prefill, Request, Metadata]:
    rank = Prefill(ON, shared, patch)
    request = rank.request(PROMPT, rid=rid)
    rank.allocated(request)
    rank.computed(request)
    return rank, request, rank.handed_over(request)


def on_decode(
    patch: pytest.MonkeyPatch, shared: SharedState, rid: str, handed: Metadata
) -> tuple[Decode, Request, bool]:
    rank = Decode(ON, shared, patch)
    request = rank.request(PROMPT, rid=rid)
    rank.allocated(request)
    rank.arrived(request, handed, PROMPT[0])
    return rank, request, rank.begins(request) == [request]


@pytest.mark.parametrize("kind", ["ForeignPage", "UnwrittenPage"])
def test_prefill_finds_the_fault_that_a_canary_asks_for(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    shared = state(Door.CANARY)
    rank, request, _ = on_prefill(monkeypatch, shared, f"kvfence-drill-{kind}-x")
    assert request.to_finish is not None
    assert (rank.found, rank.integrity.tell()["drills"]) == ({}, {kind: 1})
    assert rank.alarm.contained == 0


@pytest.mark.parametrize("kind", ["ForeignPage", "UnwrittenPage", "OtherBytes", "Coverage"])
def test_decode_finds_the_fault_that_a_canary_asks_for(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    shared = state(Door.CANARY)
    _, _, handed = on_prefill(monkeypatch, state(Door.CANARY), "x")
    rank, _, goes_on = on_decode(monkeypatch, shared, f"kvfence-drill-{kind}-x", handed)
    assert not goes_on
    assert (rank.found, rank.integrity.tell()["drills"]) == ({}, {kind: 1})
    assert rank.alarm.contained == 0
    (receipt,) = shared.receipts(0)
    assert receipt["found"] == {kind: 1}
    assert not receipt["verified"]
    assert len(rank.allocator.free_pages) == 16  # it gives back what it had, as any other does


@pytest.mark.parametrize("door", [Door.OPEN, Door.DRAINING, Door.CLOSED])
def test_no_fault_is_made_unless_nobody_else_is_let_in(monkeypatch: pytest.MonkeyPatch, door: Door) -> None:
    _, _, handed = on_prefill(monkeypatch, state(door), "x")
    rank, _, goes_on = on_decode(monkeypatch, state(door), "kvfence-drill-ForeignPage-x", handed)
    assert goes_on
    assert rank.integrity.tell()["drills"] == {}


def test_each_leg_keeps_a_receipt_of_a_canary(monkeypatch: pytest.MonkeyPatch) -> None:
    legs = state(Door.CANARY), state(Door.CANARY)
    _, _, handed = on_prefill(monkeypatch, legs[0], "kvfence-canary-x")
    on_decode(monkeypatch, legs[1], "kvfence-canary-x", handed)
    for shared, leg in zip(legs, ("prefill", "decode"), strict=True):
        (receipt,) = shared.receipts(0)
        assert receipt["handedOver"] == {"start": 0, "end": len(PROMPT), "tokens": len(PROMPT)}
        assert (receipt["leg"], receipt["room"], receipt["tokens"]) == (leg, ROOM, len(PROMPT))
        assert (receipt["pages"], receipt["pagesVerified"], receipt["found"]) == (4, 4, {})
        assert receipt["verified"]
        assert receipt["bytes"] > 0


def test_nobody_else_gets_a_receipt(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = state(Door.OPEN)
    on_prefill(monkeypatch, shared, "user")
    assert shared.receipts(0) == []
