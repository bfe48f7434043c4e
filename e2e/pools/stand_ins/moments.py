"""The moments of a coming-up, as they are seen from outside of the operator, and what a test does at one of them."""

from __future__ import annotations

import threading
from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Moment(StrEnum):
    """In their order."""

    APPLIED = "all objects are there and no engine has started"
    STARTED = "the kubelet says that all engines have started"
    MEASURED = "a door was asked what it measured"
    PROVING_PAIRS = "an engine got its third prompt, with doors on canary"
    PAIRS_PROVEN = "the router was told of the engines"
    PROVING_FRONTS = "the front got its first prompt"
    ONE_OPEN = "the first door has opened"
    ALL_OPEN = "the last door has opened, and the operator has not heard of it"
    ADMITTED = "the status says that the pool serves"


class Moments:
    """Does something once, the first time that a moment comes. Its methods are called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waited_for: Moment | None = None
        self._do: Callable[[], None] = lambda: None
        self._others: frozenset[str] = frozenset()
        self._opened: Counter[str] = Counter()
        self._over = threading.Event()

    def at(self, moment: Moment, do: Callable[[], None], others: Iterable[str]) -> None:
        """Have `do` called when the moment comes; until it has returned, what came about there waits for it.

        Args:
            moment: of a pool that is new.
            do: what.
            others: UIDs of pools that are there already, whose moments do not count.
        """
        with self._lock:
            self._waited_for, self._do, self._others = moment, do, frozenset(others)
            self._opened.clear()
            self._over.clear()

    def wait(self, seconds: float) -> bool:
        """Wait until the moment came; whether it did."""
        return self._over.wait(seconds)

    def is_over(self) -> bool:
        """Whether the moment came, and what goes on since is for nobody until `go_on`."""
        return self._over.is_set()

    def go_on(self) -> None:
        """Have admissions arrive again."""
        self._over.clear()

    def seen(self, moment: Moment, pool: str) -> None:
        """Say that a moment of a pool has come."""
        with self._lock:
            if moment is not self._waited_for or pool in self._others:
                return
            self._waited_for = None
            self._do()
            self._over.set()

    def opened(self, pool: str) -> None:
        """Say that a door of a pool has taken the admission that opens it."""
        with self._lock:
            self._opened[pool] += 1
            count = self._opened[pool]
        self.seen(Moment.ONE_OPEN if count == 1 else Moment.ALL_OPEN, pool)
