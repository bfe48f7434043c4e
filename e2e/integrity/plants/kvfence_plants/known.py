"""What the plants remember of requests that were here, so that one can be given what another had."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

_KEPT = 512


class Rooms:
    """By bootstrap room; the oldest are forgotten."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, Any] = OrderedDict()

    def keep(self, room: int | None, what: Any) -> None:
        """Remember it."""
        if room is not None:
            self._kept[room] = what
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)

    def of(self, room: int) -> Any:
        """Return what was remembered, none when nothing was: its request failed, say, before it came so far."""
        return self._kept.get(room)


PROMPTS = Rooms()
"""Token ids of each prompt, as they came in."""

REQUESTS = Rooms()
"""SGLang's own object of each request that decode had ready."""

PAGES = Rooms()
"""Page ids of the prompt of each request that decode had ready."""
