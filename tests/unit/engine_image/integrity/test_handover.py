"""What prefill writes is read as it was, and nothing else is read as a hand-over."""

from __future__ import annotations

from dataclasses import astuple, fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvfence_engine.integrity import handover
from kvfence_engine.integrity.handover import INT32_SLOTS, UINT64_SLOTS, HandOver, read, write

WHOLE = HandOver(room=77, start=0, end=40, tokens=40, digest=2**62, proof=5, generation=2**62 - 1)
CHECK_OF_WHOLE = [715110003, -2078043117, -468188886, -165355455, -1669588821, 1368522201]
LARGEST = HandOver(*[2**63 - 1] * 7)

some_number = st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1]) | st.integers(0, 2**63 - 1)
some_handover = st.builds(HandOver, *[some_number] * 7)
some_int32 = st.integers(-(2**31), 2**31 - 1)
any_int = some_int32 | st.integers(0, 2**64 - 1) | st.integers()


@given(some_handover)
def test_what_is_written_is_read_as_it_was(handed: HandOver) -> None:
    assert read(*write(handed), handed.room) == handed


@given(some_handover)
def test_what_is_written_fits_into_the_slots_that_sglang_leaves_empty(handed: HandOver) -> None:
    small, large = np.full((1, 16), 9, np.int32), np.full((1, 8), 9, np.int64)
    small[0, INT32_SLOTS], large[0, UINT64_SLOTS] = write(handed)
    assert small[0, :8].tolist() == [9] * 8
    assert large[0, :1].tolist() == [9]
    assert read(small[0, INT32_SLOTS].tolist(), large[0, UINT64_SLOTS].tolist(), handed.room) == handed


@given(some_handover, st.integers(0, 14), st.data())
def test_a_row_in_which_any_slot_changed_is_none(handed: HandOver, slot: int, data: st.DataObject) -> None:
    row = [*write(handed)[0], *write(handed)[1]]
    row[slot] = data.draw(any_int.filter(lambda value: value != row[slot]))
    for room in (handed.room, row[8]):
        assert read(row[:8], row[8:], room) is None


@pytest.mark.parametrize("slot", range(15))
@pytest.mark.parametrize("change", [lambda value: value ^ 1, lambda value: 0 if value else 1])
def test_every_slot_counts(slot: int, change: Any) -> None:
    row = [*write(WHOLE)[0], *write(WHOLE)[1]]
    row[slot] = change(row[slot])
    assert read(row[:8], row[8:], row[8]) is None


def test_a_row_that_an_earlier_room_left_is_none() -> None:
    assert read(*write(WHOLE), WHOLE.room + 1) is None


def test_a_row_of_two_hand_overs_of_the_same_room_is_none() -> None:
    other = replace(WHOLE, end=39)
    assert read(write(WHOLE)[0], write(other)[1], WHOLE.room) is None


def test_a_row_of_another_version_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover, "_VERSION", 2)
    later = write(WHOLE)
    monkeypatch.undo()
    assert read(*later, WHOLE.room) is None


@pytest.mark.parametrize("fill", [0, 1, -1])
def test_a_row_without_a_hand_over_is_none(fill: int) -> None:
    assert read([fill] * 8, [fill] * 7, fill) is None


@given(st.lists(any_int, max_size=9), st.lists(any_int, max_size=9), any_int)
def test_garbage_is_none(small: list[int], large: list[int], room: int) -> None:
    assert read(small, large, room) is None
    assert read(write(WHOLE)[0], large, room) is None
    assert read(small, write(WHOLE)[1], WHOLE.room) is None


@pytest.mark.parametrize("name", [field.name for field in fields(HandOver)])
@pytest.mark.parametrize("value", [-1, 2**63])
def test_a_number_that_does_not_fit_is_neither_written_nor_read(name: str, value: int) -> None:
    wrong = replace(LARGEST, **{name: value})
    with pytest.raises(ValueError, match="63 bits"):
        write(wrong)
    assert read(write(LARGEST)[0], list(astuple(wrong)), wrong.room) is None


def test_the_format_is_the_one_that_engines_of_this_version_speak() -> None:
    """Two engines of one pool can have different builds of this package for a while; a change needs a new version."""
    small, large = write(WHOLE)
    assert (small, large) == ([0x6B76666E, 1, *CHECK_OF_WHOLE], [77, 0, 40, 40, 2**62, 5, 2**62 - 1])
