"""Each key is worked on by one worker at a time, as often as something about it changed."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest

from kvfence.controller.queue import LONGEST_RETRY_SECONDS, Key, Priority, WorkQueue
from tests.unit.controller.virtual_time import now, run

A, B, C = ("ns", "a"), ("ns", "b"), ("ns", "c")


@dataclass
class Work:
    """Takes a second for each key; does what `then` says about it, by how often it was done."""

    then: Callable[[Key, int], float | None] = lambda _key, _count: None
    began: list[tuple[float, Key]] = field(default_factory=list)
    at_work: Counter[Key] = field(default_factory=Counter)

    async def __call__(self, key: Key) -> float | None:
        self.began.append((now(), key))
        self.at_work[key] += 1
        assert self.at_work[key] == 1, "two workers have the same key"
        await asyncio.sleep(1)
        self.at_work[key] -= 1
        return self.then(key, sum(one == key for _, one in self.began))

    @property
    def keys(self) -> list[Key]:
        return [key for _, key in self.began]


@contextlib.asynccontextmanager
async def working(work: Work, workers: int = 2) -> AsyncIterator[WorkQueue]:
    queue = WorkQueue(work, workers, random.Random(1))
    task = asyncio.create_task(queue.run())
    try:
        yield queue
        assert not task.done(), "the queue works until it is cancelled"
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def failing(times: int) -> Callable[[Key, int], None]:
    def then(_key: Key, count: int) -> None:
        if count <= times:
            raise RuntimeError("no answer")

    return then


def test_a_key_that_is_added_while_it_waits_is_one_piece_of_work() -> None:
    async def go(work: Work) -> None:
        async with working(work) as queue:
            for _ in range(5):
                queue.add(A)
            assert len(queue) == 1
            await asyncio.sleep(10)
            assert len(queue) == 0

    work = Work()
    run(go(work))
    assert work.keys == [A]


def test_a_key_that_is_added_while_it_is_worked_on_is_worked_on_once_more_and_by_one_worker_at_a_time() -> None:
    async def go(work: Work) -> None:
        async with working(work, workers=4) as queue:
            queue.add(A)
            await asyncio.sleep(0.5)
            for _ in range(5):
                queue.add(A)
            await asyncio.sleep(10)
            assert len(queue) == 0

    work = Work()
    run(go(work))
    assert work.began == [(0, A), (1, A)]


def test_other_keys_are_worked_on_meanwhile_as_many_as_there_are_workers() -> None:
    async def go(work: Work) -> None:
        async with working(work, workers=2) as queue:
            for key in (A, B, C):
                queue.add(key)
            await asyncio.sleep(10)

    work = Work()
    run(go(work))
    assert work.began == [(0, A), (0, B), (1, C)]


def test_what_changed_comes_before_what_is_only_looked_at_to_be_sure() -> None:
    async def go(work: Work) -> None:
        async with working(work, workers=1) as queue:
            for key in (A, B):
                queue.add(key, Priority.RESYNC)
            queue.add(C)
            queue.add(B)  # which waits already, and now something happened
            queue.add(B, Priority.RESYNC)
            await asyncio.sleep(10)
            assert len(queue) == 0

    work = Work()
    run(go(work))
    assert work.keys == [C, B, A]


def test_a_key_that_was_moved_forward_leaves_no_second_piece_of_work_behind() -> None:
    async def go(work: Work) -> None:
        async with working(work, workers=1) as queue:
            queue.add(A)
            queue.add(B, Priority.RESYNC)
            queue.add(B)
            await asyncio.sleep(1.5)  # B is worked on, and stands in the line of resyncs still
            queue.add(B)
            queue.add(C, Priority.RESYNC)
            await asyncio.sleep(10)
            assert len(queue) == 0

    work = Work()
    run(go(work))
    assert work.keys == [A, B, B, C]


def test_what_is_left_of_a_key_that_was_moved_forward_gives_it_to_no_second_worker() -> None:
    others = [("ns", f"other-{index}") for index in range(3)]

    async def go(work: Work) -> None:
        async with working(work, workers=2) as queue:
            queue.add(A, Priority.RESYNC)
            for key in (A, *others):
                queue.add(key)
            await asyncio.sleep(1.5)  # A is done, and still stands in the line of resyncs
            queue.add(A, Priority.RESYNC)
            await asyncio.sleep(10)

    work = Work()
    run(go(work))
    assert [when for when, key in work.began if key == A] == [0, 2]


def test_what_fails_is_logged_and_tried_again_later_and_later_up_to_a_limit(caplog: pytest.LogCaptureFixture) -> None:
    async def go(work: Work) -> None:
        async with working(work, workers=1) as queue:
            queue.add(A)
            await asyncio.sleep(3600)

    work = Work(failing(1000))
    run(go(work))
    waits = [after - before - 1 for (before, _), (after, _) in itertools.pairwise(work.began)]
    assert all(2**n / 2 - 1e-6 <= wait <= 2**n + 1e-6 for n, wait in enumerate(waits[:6]))
    assert LONGEST_RETRY_SECONDS == 60
    assert all(LONGEST_RETRY_SECONDS / 2 - 1e-6 <= wait <= LONGEST_RETRY_SECONDS + 1e-6 for wait in waits[6:])
    assert len({round(wait, 3) for wait in waits[6:]}) > 1, "retries are spread"
    assert {record.levelno for record in caplog.records} == {logging.ERROR}
    assert len(caplog.records) == len(work.began), "each failure once"
    assert "ns/a" in caplog.text
    assert "no answer" in caplog.text


def test_after_a_success_a_failure_begins_with_the_short_wait_again() -> None:
    def then(_key: Key, count: int) -> float | None:
        if count in {1, 2, 3, 4, 6}:
            raise RuntimeError("no answer")
        return 100.0 if count == 5 else None

    async def go(work: Work) -> None:
        async with working(work) as queue:
            queue.add(A)
            await asyncio.sleep(1000)

    work = Work(then)
    run(go(work))
    times = [when for when, _ in work.began]
    assert len(times) == 7
    assert times[4] - times[3] > 4, "after four failures"
    assert times[6] - times[5] <= 2, "after one"


def test_a_key_is_worked_on_again_when_the_work_says_so() -> None:
    async def go(work: Work) -> None:
        async with working(work) as queue:
            queue.add(A)
            await asyncio.sleep(3)
            assert len(queue) == 0, "it waits for its time, not for a worker"
            await asyncio.sleep(1000)

    work = Work(lambda _key, count: 30.0 if count == 1 else None)
    run(go(work))
    assert work.began == [(0, A), (31, A)]


def test_what_happens_does_not_wait_for_the_timer_and_takes_its_place() -> None:
    async def go(work: Work) -> None:
        async with working(work) as queue:
            queue.add(A)
            await asyncio.sleep(1.2)
            queue.add(A)
            await asyncio.sleep(1000)

    work = Work(lambda _key, count: 500.0 if count == 1 else None)
    run(go(work))
    assert work.began == [(0, A), (1.2, A)], "and the timer does not come on top"


@pytest.mark.parametrize("when", [0.5, 1.2, 12.0], ids=["while it fails", "while it waits", "again and again"])
def test_what_failed_waits_its_time_whatever_happens_meanwhile(when: float) -> None:
    """What a look that fails has written comes back as an event: it would never pause."""

    async def go(work: Work) -> None:
        async with working(work) as queue:
            queue.add(A)
            for _ in range(int(when / 0.1) if when > 10 else 1):
                await asyncio.sleep(min(when, 0.1) if when > 10 else when)
                queue.add(A)
            await asyncio.sleep(1000)
            assert len(queue) == 0

    work = Work(failing(4))
    run(go(work))
    waits = [after - before - 1 for (before, _), (after, _) in itertools.pairwise(work.began)]
    assert all(2**n / 2 - 1e-6 <= wait for n, wait in enumerate(waits[:4])), waits
    assert len(work.began) <= 6, "and once more for what happened while it failed"


def test_what_failed_and_then_succeeds_is_quick_again_when_something_happens() -> None:
    def then(_key: Key, count: int) -> float | None:
        if count <= 3:
            raise RuntimeError("no answer")
        return 500.0

    async def go(work: Work) -> None:
        async with working(work) as queue:
            queue.add(A)
            await asyncio.sleep(100)
            queue.add(A)
            await asyncio.sleep(100)

    work = Work(then)
    run(go(work))
    assert work.began[-1] == (100, A)
    assert len(work.began) == 5


def test_a_failure_of_one_key_holds_up_no_other_and_no_worker_is_lost() -> None:
    async def go(work: Work) -> None:
        async with working(work, workers=2) as queue:
            for index in range(20):
                queue.add(("ns", f"bad-{index}"))
            await asyncio.sleep(10.5)
            for key in (A, B):
                queue.add(key)
            await asyncio.sleep(1000)

    def then(key: Key, count: int) -> float | None:
        if key[1].startswith("bad") and count == 1:
            raise RuntimeError("no answer")
        return None

    work = Work(then)
    run(go(work))
    assert Counter(work.keys).most_common()[-2:] == [(A, 1), (B, 1)]
    assert len(work.keys) == 42


def test_nothing_is_left_of_ten_thousand_keys() -> None:
    async def go() -> None:
        async def work(_key: Key) -> float | None:
            return None

        queue = WorkQueue(work, 8, random.Random(1))
        task = asyncio.create_task(queue.run())
        for index in range(10_000):
            queue.add(("ns", str(index)), Priority.RESYNC)
            queue.add(("ns", str(index)))
        await asyncio.sleep(1)
        assert len(queue) == 0
        assert not queue._entries
        assert queue._waiting.empty()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(go())
