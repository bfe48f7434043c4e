"""The work queue: each pool is worked on by one worker at a time, as often as something about it changed.

No library has one for asyncio: kopf's own handlers keep a task, a finalizer and annotations per object (see
docs/decisions). Semantics are those of client-go's work queue: a key that is added while it waits is one piece of work;
added while it is worked on, it is worked on once more; what fails is tried again, later and later.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Callable

Key = tuple[str, str]
"""Namespace and name of a pool."""

FIRST_RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 60.0

log = logging.getLogger(__name__)


class Priority(IntEnum):
    """What is worked on first."""

    CHANGED = 0
    """Something happened."""
    RESYNC = 1
    """Nothing is known to have happened: a look to be sure."""


@dataclass
class _Entry:
    priority: Priority
    working: bool = False
    again: bool = False
    failures: int = 0
    timer: asyncio.TimerHandle | None = None


@dataclass
class WorkQueue:
    """Keys that wait for work. Of one event loop.

    Args:
        work: does what is to be done about a key; returns after how many seconds it wants to be called again although
            nothing happened, or none. An exception is logged, and the key is tried again.
        workers: how many keys are worked on at the same time.
        chance: spreads retries.
    """

    work: Callable[[Key], Awaitable[float | None]]
    workers: int
    chance: random.Random
    _entries: dict[Key, _Entry] = field(default_factory=dict)
    _waiting: asyncio.PriorityQueue[tuple[int, int, Key]] = field(default_factory=asyncio.PriorityQueue)
    _added: int = 0

    def add(self, key: Key, priority: Priority = Priority.CHANGED) -> None:
        """Have a key worked on, soon."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(priority)
            self._put(key, priority)
        elif entry.working:
            entry.again = True
        elif entry.failures:  # what failed waits its time: its own half-done writes come back as events
            return
        elif entry.timer is not None:  # it waited to be called again, and now something happened
            entry.timer.cancel()
            entry.timer = None
            entry.priority = priority
            self._put(key, priority)
        elif priority < entry.priority:
            entry.priority = priority
            self._put(key, priority)  # what it was put in as before is passed over

    def __len__(self) -> int:
        """How many keys wait or are worked on."""
        return sum(entry.timer is None for entry in self._entries.values())

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self.workers):
                group.create_task(self._worker())

    async def _worker(self) -> None:
        while True:
            priority, _, key = await self._waiting.get()
            entry = self._entries.get(key)
            if entry is None or entry.working or entry.timer is not None or entry.priority != priority:
                continue
            entry.working = True
            try:
                after = await self.work(key)
                entry.failures = 0
            except Exception:
                after = self._backoff(entry)
                log.exception("Working on pool %s/%s failed; it is tried again in %.0f s", *key, after)
            entry.working = False
            self._done(key, entry, after)

    def _done(self, key: Key, entry: _Entry, after: float | None) -> None:
        if entry.again and not entry.failures:
            entry.again = False
            entry.priority = Priority.CHANGED
            self._put(key, Priority.CHANGED)
        elif after is not None:
            entry.timer = asyncio.get_running_loop().call_later(after, self._due, key)
        else:
            del self._entries[key]

    def _due(self, key: Key) -> None:
        entry = self._entries[key]
        entry.timer = None
        entry.priority = Priority.CHANGED
        self._put(key, Priority.CHANGED)

    def _backoff(self, entry: _Entry) -> float:
        entry.failures += 1
        longest = min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** min(entry.failures - 1, 16))
        return longest * self.chance.uniform(0.5, 1.0)

    def _put(self, key: Key, priority: Priority) -> None:
        self._added += 1
        self._waiting.put_nowait((priority, self._added, key))
