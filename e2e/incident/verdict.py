"""Whether the incident was shown. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from e2e.incident.cast import LEAK

if TYPE_CHECKING:
    from collections.abc import Iterable

    from e2e.incident.scenario import Seen


def leaks(seen: Seen) -> int:
    """Return how many of B's answers were a success to B, HTTP 200, and held a marker of a user A."""
    return sum(1 for asked in seen.asked if asked.answer.decode.status == 200 and asked.leaked)


def was_shown(played: Iterable[Seen]) -> bool:
    """Return whether the version with the leak leaked to B, on a pair that otherwise works.

    The other scenes are there to be looked at and decide nothing: what they do varies with chance (a stale page need
    not hold a marker) and is no promise of SGLang's.
    """
    return any(seen.scene.title == LEAK.title and seen.copies and leaks(seen) > 0 for seen in played)
