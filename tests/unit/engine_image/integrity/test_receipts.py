"""Receipts are bounded in number and in bytes, whatever canaries call themselves."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kvfence_engine.integrity.receipts import BYTES, KEPT, LONGEST_RID, Receipt, Receipts
from kvfence_engine.integrity.tally import Kind
from kvfence_engine.state import SharedState

ONE = Receipt("kvfence-canary-1", 7, "decode", 0, 40, 3, 3, (0, 40, 40), 4096, verified=True)
HUGE = 2**63 - 1
ALL = {kind.value: HUGE for kind in Kind}
RIDS = st.text(st.characters(codec=None, exclude_categories=()), max_size=300) | st.sampled_from(
    ["\x00" * 200, "\ud800" * 200, "\U0001f600" * 200, '"' * 200, "\\" * 200]
)


def test_a_receipt_is_shown_by_these_names() -> None:
    assert replace(ONE, found={"Coverage": 1}, verified=False).as_dict() == {
        "rid": "kvfence-canary-1",
        "room": 7,
        "leg": "decode",
        "rank": 0,
        "tokens": 40,
        "pages": 3,
        "pagesVerified": 3,
        "handedOver": {"start": 0, "end": 40, "tokens": 40},
        "bytes": 4096,
        "verified": False,
        "found": {"Coverage": 1},
    }
    assert replace(ONE, handed_over=None).as_dict()["handedOver"] is None


@given(
    kept=st.integers(1, 5),
    most=st.integers(2, 3000),
    rids=st.lists(RIDS, max_size=12),
    is_large=st.booleans(),
)
def test_the_newest_are_kept_as_far_as_there_is_room(kept: int, most: int, rids: list[str], is_large: bool) -> None:
    receipts, came = Receipts(kept, most), list[dict[str, Any]]()
    for rid in rids:
        one = replace(ONE, rid=rid, room=HUGE, tokens=HUGE, found=ALL) if is_large else replace(ONE, rid=rid)
        came.append(one.as_dict())
        left = receipts.add(one)
        assert len(json.dumps(left)) <= most
        assert len(left) <= kept
        assert left == came[len(came) - len(left) :], "the newest, in their order"
        assert len(left) == kept or len(left) == len(came) or len(json.dumps(came[-len(left) - 1 :])) > most or not left


def test_the_newest_are_kept_when_there_is_room_for_all() -> None:
    receipts = Receipts()
    for room in range(KEPT + 3):
        left = receipts.add(replace(ONE, room=room, rid=f"kvfence-canary-{room}"))
    assert [one["room"] for one in left] == list(range(3, KEPT + 3))


@given(st.lists(RIDS, min_size=1, max_size=KEPT + 1))
def test_whatever_they_are_called_they_fit_into_the_record_of_a_rank(rids: list[str]) -> None:
    state, receipts = SharedState.create(), Receipts()
    for rid in rids:
        one = Receipt(rid, HUGE, "prefill", 255, HUGE, HUGE, HUGE, (HUGE,) * 3, HUGE, verified=False, found=ALL)
        state.set_receipts(0, receipts.add(one))
    assert state.receipts(0)[-1]["rid"] == rids[-1][:LONGEST_RID], "the newest is there"
    assert BYTES < 16 * 1024
