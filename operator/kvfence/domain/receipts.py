"""Receipts of canaries: what each rank of an engine kept of one request. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

CANARY_RID = "kvfence-canary-"
"""So begins the id of a request that asks for receipts (`kvfence_engine.canaries`)."""

DRILL_RID = "kvfence-drill-"
"""So begins the id of a request that asks for a fault in its own pages: the kind of fault follows, and a dash."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Of one rank."""

    room: int
    leg: str
    """`prefill` or `decode`."""
    rank: int
    tokens: int
    """Of the prompt, as this leg has it."""
    pages: int
    pages_verified: int
    handed_over: tuple[int, int, int] | None
    """First token and the one after the last whose KV was handed over, and the prompt's length, as prefill said."""
    bytes: int
    """That were looked at."""
    verified: bool
    found: Mapping[str, int] = field(hash=False)
    """What was wrong, by kind."""
