"""Receipts: what a rank kept of a canary's request, for whoever sent it. Pure.

Counts, and the id and the room that the canary drew itself; nothing of a prompt.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import Any

KEPT = 32
BYTES = 15_000
"""What all of them may take as JSON: they lie in a record of shared memory (`state.SharedState`)."""
LONGEST_RID = 128


@dataclass(frozen=True)
class Receipt:
    """Of one request on one leg."""

    rid: str
    room: int
    leg: str
    """`prefill` or `decode`."""
    rank: int
    tokens: int
    """Of the prompt, as this leg has it."""
    pages: int
    """That hold the prompt's KV here."""
    pages_verified: int
    handed_over: tuple[int, int, int] | None
    """First token and the one after the last whose KV was handed over, and the length of the prompt, as prefill said;
    none when it said nothing.
    """
    bytes: int
    """That were looked at: what lies in two of the pool's buffers for the prompt's tokens. 0 without page scrubbing."""
    verified: bool
    """Whether all that is switched on was looked at and found right."""
    found: dict[str, int] = field(default_factory=dict)
    """By kind, what was not right."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as it is shown."""
        over = self.handed_over
        return {
            "rid": self.rid[:LONGEST_RID],
            "room": self.room,
            "leg": self.leg,
            "rank": self.rank,
            "tokens": self.tokens,
            "pages": self.pages,
            "pagesVerified": self.pages_verified,
            "handedOver": None if over is None else dict(zip(("start", "end", "tokens"), over, strict=True)),
            "bytes": self.bytes,
            "verified": self.verified,
            "found": self.found,
        }


class Receipts:
    """The last ones of a rank, the newest last.

    Args:
        kept: how many.
        most: bytes that they take as JSON, all together.
    """

    def __init__(self, kept: int = KEPT, most: int = BYTES) -> None:
        self._most = most
        self._last: deque[dict[str, Any]] = deque(maxlen=kept)

    def add(self, receipt: Receipt) -> list[dict[str, Any]]:
        """Take one, give up the oldest for which there is no room, and return what is left."""
        self._last.append(receipt.as_dict())
        while len(json.dumps(list(self._last))) > self._most:
            self._last.popleft()
        return list(self._last)
