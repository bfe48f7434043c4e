"""The fuse: when what the ranks of an engine found closes it for good. Pure.

One finding that escaped is enough. Findings that were contained are counted within a window: one may be a bit that
flipped, a few within minutes are an engine that goes wrong.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvfence_engine.integrity.classes import Finding

if TYPE_CHECKING:
    from kvfence_engine.state import Alarm

CONTAINED_LIMIT = 3
CONTAINED_SECONDS = 300.0
"""So many contained findings within so long blow the fuse, unless the launcher is told otherwise."""


@dataclass(frozen=True)
class Trip:
    """Why the fuse blows."""

    finding: Finding
    """Escaped or Contained."""
    kind: str
    """What was found last; one word."""
    peer: str
    """`host:port` of the prefill engine whose KV it was found in; empty when that is not known."""


class Fuse:
    """Of one boot.

    Args:
        limit: how many contained findings blow it, 1 or more.
        seconds: within how long.

    Raises:
        ValueError: when one of them is out of range.
    """

    def __init__(self, limit: int = CONTAINED_LIMIT, seconds: float = CONTAINED_SECONDS) -> None:
        if limit < 1 or not seconds > 0:
            raise ValueError("contained findings close an engine from 1 on, within more than 0 seconds")
        self._limit = limit
        self._seconds = seconds
        self._counted: dict[int, int] = {}
        self._recent: deque[tuple[float, int]] = deque()

    def see(self, now: float, rank: int, alarm: Alarm) -> Trip | None:
        """Take note of what a rank has found in all, and return why the fuse blows, if it does.

        Args:
            now: seconds of a clock that never steps back.
            rank: its index.
            alarm: the newest of that rank; its count only goes up.
        """
        if alarm.escaped:
            return Trip(Finding.ESCAPED, alarm.escaped, alarm.peer)
        if alarm.isolated:
            return Trip(Finding.CONTAINED, alarm.isolated, "")
        new = alarm.contained - self._counted.get(rank, 0)
        if new > 0:
            self._counted[rank] = alarm.contained
            self._recent.append((now, new))
        while self._recent and self._recent[0][0] <= now - self._seconds:
            self._recent.popleft()
        if new > 0 and sum(count for _, count in self._recent) >= self._limit:
            return Trip(Finding.CONTAINED, alarm.kind, "")
        return None
