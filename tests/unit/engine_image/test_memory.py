"""What is read from shared memory is a value that was written, whole, whenever the writer stops."""

from __future__ import annotations

import mmap
import multiprocessing
import os
import struct
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvfence_engine.memory import Record, TornError

CAPACITY = 4096


def shared() -> mmap.mmap:
    return mmap.mmap(-1, Record.size(CAPACITY))


def test_fresh_memory_holds_an_empty_value() -> None:
    assert Record(shared(), 0, CAPACITY).read() == b""


@given(st.lists(st.binary(max_size=CAPACITY), min_size=1, max_size=8))
def test_the_last_value_is_read(values: list[bytes]) -> None:
    memory = shared()
    for value in values:
        Record(memory, 0, CAPACITY).write(value)
        assert Record(memory, 0, CAPACITY).read() == value


def test_a_value_that_is_too_long_is_refused_and_changes_nothing() -> None:
    record = Record(shared(), 0, CAPACITY)
    record.write(b"short")
    with pytest.raises(ValueError, match="4097 bytes do not fit"):
        record.write(b"x" * (CAPACITY + 1))
    assert record.read() == b"short"


def test_records_side_by_side_do_not_touch_each_other() -> None:
    memory = mmap.mmap(-1, 2 * Record.size(CAPACITY))
    first, second = Record(memory, 0, CAPACITY), Record(memory, Record.size(CAPACITY), CAPACITY)
    for filler in (b"a", b"b", b"c"):
        first.write(filler * CAPACITY)
        second.write(filler.upper() * CAPACITY)
    assert (first.read(), second.read()) == (b"c" * CAPACITY, b"C" * CAPACITY)


@given(st.binary(max_size=64), st.binary(max_size=64), st.integers(0, 200))
def test_a_write_that_stops_anywhere_leaves_the_old_value_or_the_new_one(old: bytes, new: bytes, stop: int) -> None:
    whole = mmap.mmap(-1, Record.size(64))
    Record(whole, 0, 64).write(b"older")
    Record(whole, 0, 64).write(old)
    before = whole[:]
    Record(whole, 0, 64).write(new)
    changed = [at for at in range(len(before)) if before[at] != whole[at]]
    cut = mmap.mmap(-1, len(before))
    cut[:] = before
    for at in changed[:stop]:
        cut[at] = whole[at]
    assert Record(cut, 0, 64).read() in (old, new)


def test_memory_that_holds_no_value_at_all_is_said() -> None:
    memory = shared()
    Record(memory, 0, CAPACITY).write(b"one")
    Record(memory, 0, CAPACITY).write(b"two")
    for cell in (0, 1):
        struct.pack_into("<Q", memory, cell * (16 + CAPACITY), 77)  # a generation that its checksum does not cover
    with pytest.raises(TornError):
        Record(memory, 0, CAPACITY).read()


def keep_writing(descriptor: int) -> None:
    record = Record(mmap.mmap(descriptor, Record.size(CAPACITY)), 0, CAPACITY)
    number = 0
    while True:
        number += 1
        record.write(str(number).encode() * (1 + number % 300))


def test_no_torn_value_is_read_while_another_process_writes_without_pause() -> None:
    descriptor = os.memfd_create("test")
    os.ftruncate(descriptor, Record.size(CAPACITY))
    record = Record(mmap.mmap(descriptor, Record.size(CAPACITY)), 0, CAPACITY)
    writer = multiprocessing.get_context("fork").Process(target=keep_writing, args=(descriptor,), daemon=True)
    writer.start()
    try:
        seen, last, ends = 0, 0, time.monotonic() + 1.5
        while time.monotonic() < ends:
            value = record.read()
            if not value:
                continue
            number = next(n for n in range(1, len(value) + 1) if value == value[:n] * (1 + int(value[:n]) % 300))
            seen, last = seen + (int(value[:number]) != last), max(last, int(value[:number]))
        print(f"{seen} different values were read, the last was number {last}")
        assert seen > 50
    finally:
        writer.kill()
        writer.join()
        os.close(descriptor)
