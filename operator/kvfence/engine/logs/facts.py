"""What one record of a log says, apart from what it means beside the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from kvfence.domain.diagnosis.seen import NOTHING, Product

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.engine.logs.prefix import Prefix


class Kind(Enum):
    """What a record is about."""

    SUMMARY = auto()
    """The final size, and the context: printed once per scheduler when all of its memory is given out."""
    WARNING = auto()
    """The final size and the context, because the one is smaller."""
    FULL = auto()
    """The size of the layers that see a whole request, where others see a window of it."""
    FULL_ESTIMATE = auto()
    """The same, and it may be sized again before memory is given out."""
    ALLOCATED = auto()
    RESIZED = auto()
    """After CUDA graphs were captured; what was said before was an upper bound."""
    BOUND = auto()
    """Sizes so far are an upper bound: the real ones follow."""
    SETTLED = auto()
    """Memory for the pools has been given out."""
    SERVER_ARGS = auto()
    LOADING = auto()
    READY = auto()
    FAILED = auto()
    TRACEBACK = auto()
    INPUT_LIMIT = auto()
    VERSION = auto()
    BLOCKS = auto()
    """vLLM's pool, counted in blocks."""
    BLOCK_SIZE = auto()
    CONTEXT = auto()
    """The context alone."""
    KEYS = auto()
    """Settings that show secrets."""
    OTHER = auto()
    """A line of the engine's that says nothing of size: it tells the rank, and that the engine lived."""


SIZES = frozenset({Kind.ALLOCATED, Kind.FULL, Kind.FULL_ESTIMATE, Kind.RESIZED, Kind.BLOCKS})
"""Kinds that give memory out, before the summary."""


@dataclass(frozen=True, slots=True)
class Said:
    """What the text of a record says."""

    kind: Kind
    product: Product | None = None
    pool: int | None = None
    context: int | None = None
    limit: int | None = None
    word: str = ""
    """The version, or what failed in our own words."""
    settings: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    keys_shown: tuple[str, ...] = ()
    garbled: bool = False
    """A number in it is out of range or contradicts itself."""

    @property
    def counts(self) -> bool:
        """Whether a size is in it."""
        return (self.pool, self.context, self.limit) != (None, None, None)


@dataclass(frozen=True, slots=True)
class Fact:
    """What a record says, with whose it is and when it was."""

    said: Said
    line: int
    prefix: Prefix
    doubtful: bool = False
    """It may be a user's."""
    width: int = 0
    """Bytes of the line that it ends."""
    if_cut: Said | None = None
    """What it says when that line was cut: less, or nothing."""
    level: int = 0
    """How often something was unwrapped to get at it."""
    outer: str = ""
    """Who wrote the line that it was in."""
    among: bool = False
    """It was one of several lines in one message of a collector's."""

    @property
    def kind(self) -> Kind:
        """What it is about."""
        return self.said.kind
