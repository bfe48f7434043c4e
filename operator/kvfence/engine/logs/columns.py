"""Tells that a log was cut at a column, by a terminal's copy or `cut -c`: a number at that column may be shortened.

One line alone at that column cannot be told from one that ends there: where no other line of the log reaches it, a
shortened number counts as whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field

NARROWEST = 40
"""Bytes; no screen is narrower."""

_HEAD = 12
"""Characters by which records are told apart: all ranks print the same one at the same width."""


@dataclass(slots=True)
class Columns:
    """How wide the widest lines are, and how many kinds of them are that wide."""

    widest: int = 0
    _heads: set[str] = field(default_factory=set)

    def add(self, width: int, body: str) -> None:
        """Take note of one line."""
        if width > self.widest:
            self.widest = width
            self._heads.clear()
        if width == self.widest and len(self._heads) < 2:
            self._heads.add(body[:_HEAD])

    def cut(self, width: int) -> bool:
        """Tell whether a line of this width may have gone on: different records end there, and none goes further."""
        return width == self.widest >= NARROWEST and len(self._heads) > 1
