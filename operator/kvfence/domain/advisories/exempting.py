"""Exemptions from advisories: each names who took the decision, why, and until when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from kvfence.domain.advisories.advisory import Advisory


@dataclass(frozen=True, slots=True)
class Exemption:
    """Somebody's decision to run in spite of an advisory, for a time.

    Raises:
        ValueError: it names no advisory, nobody, no reason, or a time without its offset from UTC.
    """

    id: str
    """Of the advisory, or one of its aliases."""
    who: str
    """Who answers for it."""
    reason: str
    until: datetime
    """It ends then, by itself."""

    def __post_init__(self) -> None:
        """An exemption that nobody answers for, or that never ends, is none."""
        for what, text in (("id", self.id), ("who", self.who), ("reason", self.reason)):
            if not text.strip():
                raise ValueError(f"an exemption from an advisory needs its {what}")
        if self.until.tzinfo is None:
            raise ValueError("the end of an exemption needs its offset from UTC, such as 2026-12-31T00:00:00Z")


def exempted(advisory: Advisory, exemptions: Iterable[Exemption], now: datetime) -> Exemption | None:
    """Return the exemption from an advisory that holds now and the longest; none when there is none."""
    holding = [one for one in exemptions if advisory.named(one.id) and now < one.until]
    return max(holding, key=lambda one: one.until, default=None)


def lapsed(advisory: Advisory, exemptions: Iterable[Exemption], now: datetime) -> Exemption | None:
    """Return the exemption from an advisory that ended last; none when none ended. For the message to its owner."""
    ended = [one for one in exemptions if advisory.named(one.id) and one.until <= now]
    return max(ended, key=lambda one: one.until, default=None)
