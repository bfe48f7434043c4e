"""Names that may be used once: rooms and ids of requests, as hashes. Pure.

A router may send a request again behind one's back, when its connection broke, say. Under the same room prefill would
send KV to whoever waits for the room, and two requests would wait.
"""

from __future__ import annotations

from collections import OrderedDict

KEPT = 65_536
"""At a hundred requests a second, the last ten minutes; a router sends again within seconds. Some 10 MB."""


class SeenOnce:
    """Remembers the last names.

    Args:
        kept: how many.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._names: OrderedDict[bytes, None] = OrderedDict()

    def has(self, name: bytes) -> bool:
        """Whether this was used, as far back as is remembered."""
        return name in self._names

    def add(self, name: bytes) -> None:
        """Take note of a use; one that is there already is not made any newer."""
        self._names.setdefault(name)
        if len(self._names) > self._kept:
            self._names.popitem(last=False)
