"""Zeroed pages hold nothing, other pages keep every bit, and what arrived is told from what did not.

Runs with numpy, and with torch where that can be imported: as SGLang has it, and once as it is on a device, where
there is no numpy array to fall back on.
"""

from __future__ import annotations

import itertools
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from math import isqrt
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvfence_engine.integrity import scrub
from kvfence_engine.integrity.scrub import KvPages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HEADS, NUMBERS = 2, 4
WORD_TYPES = ("int8", "uint8", "int16", "int32", "int64")


@dataclass(frozen=True)
class Backend:
    """The arrays of a library.

    Attributes:
        name: of the library.
        array: shares the memory of a numpy array.
        type: the library's own name of a number type.
        in_force: tells scrub where it runs.
    """

    name: str
    array: Callable[[Any], Any]
    type: Callable[[str], Any]
    in_force: Callable[[], AbstractContextManager[Any]] = nullcontext

    def pool(self, buffers: Sequence[Any], page_size: int, words: str = "int16") -> KvPages:
        with self.in_force():
            return KvPages([self.array(b) for b in buffers], page_size, lambda rows: rows.view(self.type(words)))

    def zero(self, pool: KvPages, pages: Sequence[int]) -> int:
        with self.in_force():
            return pool.zero(self.ids(pages))

    def empty(self, pool: KvPages, pages: Sequence[int]) -> list[bool]:
        with self.in_force():
            found: list[bool] = pool.empty(self.ids(pages)).tolist()
        return found

    def proof(self, pool: KvPages, slots: Sequence[int]) -> int:
        with self.in_force():
            return pool.proof(self.ids(slots))

    def ids(self, ids: Sequence[int]) -> Any:
        return self.array(np.array(ids, dtype=np.int64))


def _backends() -> list[Backend]:
    found = [Backend("numpy", lambda array: array, np.dtype)]
    if find_spec("torch"):
        torch = import_module("torch")
        tensors = Backend("torch", torch.from_numpy, lambda name: getattr(torch, name))
        found += [
            tensors,
            Backend(
                "torch as on a device",
                tensors.array,
                tensors.type,
                lambda: patch.object(scrub, "_as_host_array", lambda array: array),
            ),
        ]
    return found


BACKENDS = _backends()
each_backend = pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)


def filled(buffers: int, slots: int, seed: int = 1) -> list[Any]:
    """Return buffers of a pool with random bytes, none of them 0."""
    chance = np.random.default_rng(seed)
    rows = (slots, HEADS, NUMBERS)
    return [chance.integers(1, 256, (*rows, 2), dtype=np.uint8).view(np.int16).reshape(rows) for _ in range(buffers)]


def slots_of(pages: Sequence[int], page_size: int, tokens: int | None = None) -> list[int]:
    return [page * page_size + place for page in pages for place in range(page_size)][:tokens]


def by_the_book(buffers: Sequence[Any], slots: Sequence[int], words: str) -> int:
    """Compute a proof as the docstring defines it, slowly."""
    total = 0
    for i, slot in enumerate(slots, 1):
        row: list[int] = []
        for buffer in [buffers[0]] if len(buffers) == 1 else [buffers[0], buffers[-1]]:
            shown = [int(word) for word in buffer[slot].reshape(-1).view(words)]
            if words == "int64":
                row += [word % 2**32 for word in shown] + [word >> 32 for word in shown]
            else:
                row += shown
        inner = 1 + sum(word * scrub.BASE_OF_WORDS**j for j, word in enumerate(row, 1))
        total += inner * scrub.BASE_OF_TOKENS**i
    return total % 2**62 + 1


def twos(number: int) -> int:
    """Return how many factors of 2 a number has."""
    return (number & -number).bit_length() - 1


def test_the_bases_are_what_their_comment_says() -> None:
    for root, base in ((2, scrub.BASE_OF_TOKENS), (3, scrub.BASE_OF_WORDS)):
        assert base == isqrt(root << 124) % 2**62 // 8 * 8 + 0b101
        assert all(twos(base**n - 1) == twos(n) + 2 for n in range(1, 65))


@st.composite
def pools(draw: st.DrawFn) -> tuple[int, int, list[int]]:
    """Draw how many buffers, the page size, and some pages in any order, of 6."""
    pages = draw(st.lists(st.integers(0, 5), unique=True, max_size=6))
    return draw(st.integers(1, 4)), draw(st.integers(1, 4)), pages


@each_backend
@settings(max_examples=60, deadline=None)
@given(pools(), st.sampled_from(WORD_TYPES))
def test_zeroing_takes_every_byte_of_these_pages_and_none_of_others(
    backend: Backend, drawn: tuple[int, int, list[int]], words: str
) -> None:
    count, page_size, pages = drawn
    buffers = filled(count, 6 * page_size)
    expected = [buffer.copy() for buffer in buffers]
    for buffer in expected:
        buffer[slots_of(pages, page_size)] = 0
    pool = backend.pool(buffers, page_size, words)
    assert len(pool) == 6
    zeroed = backend.zero(pool, pages)
    for found, wanted in zip(buffers, expected, strict=True):
        assert found.tobytes() == wanted.tobytes()
    assert zeroed == sum(buffer[slots_of(pages, page_size)].nbytes for buffer in buffers)


@each_backend
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
def test_numbers_of_other_types_are_zeroed_too(backend: Backend, dtype: str) -> None:
    buffers = [np.full((6, 2, 8), 3, dtype=dtype) for _ in range(2)]
    assert backend.zero(backend.pool(buffers, 2), [1]) == sum(buffer[2:4].nbytes for buffer in buffers)
    assert [buffer.any(axis=(1, 2)).tolist() for buffer in buffers] == [[True, True, False, False, True, True]] * 2


@each_backend
@settings(max_examples=60, deadline=None)
@given(pools())
def test_pages_are_empty_once_zeroed_and_others_are_not(backend: Backend, drawn: tuple[int, int, list[int]]) -> None:
    count, page_size, pages = drawn
    pool = backend.pool(filled(count, 6 * page_size), page_size)
    assert backend.empty(pool, range(6)) == [False] * 6
    backend.zero(pool, pages)
    assert backend.empty(pool, range(6)) == [page in pages for page in range(6)]
    assert backend.empty(pool, pages[::-1]) == [True] * len(pages)


@each_backend
@pytest.mark.parametrize("words", WORD_TYPES)
def test_one_bit_in_a_first_row_of_the_first_or_last_buffer_is_enough_for_a_page_to_have_arrived(
    backend: Backend, words: str
) -> None:
    page_size, row = 2, HEADS * NUMBERS * 2
    buffers = [np.zeros((3 * page_size, HEADS, NUMBERS), dtype=np.int16) for _ in range(3)]
    pool = backend.pool(buffers, page_size, words)
    for place, byte, bit in itertools.product(range(3), range(page_size * row), range(8)):
        memory = buffers[place].reshape(3, -1)[1].view(np.uint8)
        memory[byte] = 1 << bit
        looked_at = place != 1 and byte < row
        assert backend.empty(pool, [0, 1, 2]) == [True, not looked_at, True]
        memory[byte] = 0


@each_backend
def test_minus_zero_is_a_byte_that_arrived(backend: Backend) -> None:
    buffers = [np.zeros((4, 1, 4), dtype=np.float16) for _ in range(2)]
    buffers[0][2] = -0.0
    assert backend.empty(backend.pool(buffers, 2), [0, 1]) == [True, False]


@each_backend
@pytest.mark.parametrize("words", WORD_TYPES)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_proof_is_what_the_docstring_says(backend: Backend, count: int, words: str) -> None:
    buffers = filled(count, 20)
    slots = slots_of([3, 1, 4, 2], 4, tokens=13)
    pool = backend.pool(buffers, 4, words)
    assert backend.proof(pool, slots) == by_the_book(buffers, slots, words)
    assert backend.proof(pool, []) == 1


@each_backend
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 5])
def test_reading_in_parts_changes_nothing(backend: Backend, rows: int) -> None:
    buffers = filled(2, 20)
    pool, slots = backend.pool(buffers, 1), range(19, 2, -1)
    backend.zero(pool, [3, 11, 19])
    block = rows * HEADS * NUMBERS * 2 + 1
    with patch.multiple(scrub, _HOST_BLOCK=block, _DEVICE_BLOCK=block):
        assert backend.proof(pool, slots) == by_the_book(buffers, slots, "int16")
        assert backend.empty(pool, slots) == [slot in {3, 11, 19} for slot in slots]


@each_backend
@pytest.mark.parametrize("words", WORD_TYPES)
def test_any_bit_that_flips_in_the_first_or_last_buffer_changes_the_proof(backend: Backend, words: str) -> None:
    buffers, slots = filled(3, 4), [3, 1, 2]
    pool = backend.pool(buffers, 1, words)
    before = backend.proof(pool, slots)
    for place, slot, byte, bit in itertools.product(range(3), slots, range(HEADS * NUMBERS * 2), range(8)):
        memory = buffers[place][slot].reshape(-1).view(np.uint8)
        memory[byte] ^= 1 << bit
        after = backend.proof(pool, slots)
        assert 1 <= after <= 2**62
        assert (after != before) == (place != 1)
        memory[byte] ^= 1 << bit
    assert backend.proof(pool, slots) == before


@st.composite
def requests(draw: st.DrawFn) -> tuple[int, list[int], int]:
    """Draw the page size, at least two pages of 6 in any order, and how many tokens stand in them."""
    page_size = draw(st.integers(1, 4))
    pages = draw(st.lists(st.integers(0, 5), unique=True, min_size=2, max_size=6))
    missing = draw(st.integers(0, page_size - 1))
    return page_size, pages, len(pages) * page_size - missing


@each_backend
@settings(max_examples=60, deadline=None)
@given(requests(), st.permutations(range(6)))
def test_the_other_side_has_the_same_proof_in_whichever_slots_the_bytes_lie(
    backend: Backend, request_: tuple[int, list[int], int], moved: list[int]
) -> None:
    page_size, pages, tokens = request_
    here, there = filled(3, 6 * page_size), filled(3, 6 * page_size, seed=2)
    others = [moved[page] for page in pages]
    for source, target in zip(here, there, strict=True):
        target[slots_of(others, page_size, tokens)] = source[slots_of(pages, page_size, tokens)]
    proofs = [
        backend.proof(backend.pool(buffers, page_size), slots_of(chosen, page_size, tokens))
        for buffers, chosen in ((here, pages), (there, others))
    ]
    assert proofs[0] == proofs[1]


@each_backend
@settings(max_examples=60, deadline=None)
@given(requests(), st.booleans(), st.data())
def test_pages_in_another_order_missing_or_added_change_the_proof(
    backend: Backend, request_: tuple[int, list[int], int], alike: bool, data: st.DataObject
) -> None:
    page_size, pages, _ = request_
    buffers = filled(2, 7 * page_size)
    if alike:  # the same rows in every page, but in another order
        for buffer, page in itertools.product(buffers, range(6)):
            buffer[slots_of([page], page_size)] = np.roll(buffer[:page_size], page, axis=0)
            buffer[page * page_size, 0, 0] = page + 1
    for buffer in buffers:
        buffer[slots_of([6], page_size)] = 0
    pool = backend.pool(buffers, page_size)
    before = backend.proof(pool, slots_of(pages, page_size))
    first, second = sorted(data.draw(st.lists(st.integers(0, len(pages) - 1), unique=True, min_size=2, max_size=2)))
    swapped = pages.copy()
    swapped[first], swapped[second] = pages[second], pages[first]
    for other in (swapped, pages[:first] + pages[first + 1 :], [*pages, 6], [6, *pages], [*pages, pages[first]]):
        assert backend.proof(pool, slots_of(other, page_size)) != before


@each_backend
@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3), st.data())
def test_two_tokens_that_change_places_change_the_proof_however_little_they_differ(
    backend: Backend, bit: int, data: st.DataObject
) -> None:
    first, second = sorted(data.draw(st.lists(st.integers(0, 63), unique=True, min_size=2, max_size=2)))
    buffers = [np.zeros((64, HEADS, NUMBERS), dtype=np.int16) for _ in range(2)]
    buffers[-1][first, -1, -1] = -(2**15) >> bit
    slots = list(range(64))
    pool = backend.pool(buffers, 1)
    before = backend.proof(pool, slots)
    slots[first], slots[second] = second, first
    assert backend.proof(pool, slots) != before


def test_what_is_no_pool_of_pages_is_refused_with_the_reason() -> None:
    fits = np.zeros((8, 1, 4), dtype=np.int16)
    cases: list[tuple[list[Any], int, str, str]] = [
        ([], 4, "int16", "without buffers"),
        ([fits], 0, "int16", "at least 1 token, not 0"),
        ([fits, fits[:7]], 4, "int16", "buffer 1 has 7 slots: no whole pages of 4"),
        ([fits, fits[:4]], 4, "int16", "have 4 or 8 slots"),
        ([np.zeros((2, 1, 4, 4), dtype=np.int16)], 4, "int16", r"shape \(2, 1, 4, 4\)"),
        ([np.zeros((8, 4), dtype=np.int16)], 4, "int16", r"shape \(8, 4\)"),
        ([np.zeros((8, 0, 4), dtype=np.int16)], 4, "int16", r"shape \(8, 0, 4\)"),
        ([fits, np.zeros((8, 2, 4), dtype=np.int16)[:, :1]], 4, "int16", "buffer 1 has gaps"),
        ([fits], 4, "float16", "shown as float16 instead of"),
        ([fits], 4, "uint64", "shown as uint64 instead of"),
    ]
    for buffers, page_size, words, reason in cases:
        for backend in BACKENDS:
            if words == "uint64" and backend.name != "numpy":
                continue
            with pytest.raises(ValueError, match=reason):
                backend.pool(buffers, page_size, words)


@pytest.mark.parametrize("words", [np.copy, lambda rows: rows[:, :2], lambda rows: rows.reshape(4, -1)])
def test_words_that_are_not_the_very_memory_are_refused(words: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match="buffer 0 is shown as a copy, or not all of it"):
        KvPages([np.zeros((8, 1, 4), dtype=np.int16)], 4, words)


@each_backend
def test_buffers_that_took_the_place_of_the_ones_known_are_noticed(backend: Backend) -> None:
    buffers = filled(2, 8)
    pool = backend.pool(buffers, 4)
    known = [backend.array(buffer) for buffer in buffers]
    assert pool.holds(known)
    assert pool.holds([tensor[:] for tensor in known])
    others: list[list[Any]] = [
        [known[0], backend.array(buffers[1].copy())],
        [known[0], known[1][:4]],
        [known[0], known[1].view(backend.type("uint16" if backend.name == "numpy" else "float16"))],
        known[::-1],
        known[:1],
    ]
    assert not any(pool.holds(other) for other in others)
