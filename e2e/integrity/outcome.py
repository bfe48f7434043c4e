"""What user B got, and what that means. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvfence.domain.asking import Answer


class Verdict(StrEnum):
    """What came of an attack, for the user that it is made on."""

    LEAKED = "leaked"
    """200, and another user's marker in it."""
    WRONG = "wrong"
    """200, and not the answer to this prompt."""
    RIGHT = "right"
    REFUSED = "refused"
    """4xx."""
    FAILED = "failed"
    """5xx, or no answer: no token of anybody's."""


@dataclass(frozen=True)
class Outcome:
    """Of one attack."""

    fired: bool
    """Whether the plant says that it acted. If not, the rest shows nothing."""
    prefill: Answer | None
    """None where only decode was asked."""
    decode: Answer
    expected: str
    """How a right answer begins."""
    leaked: tuple[str, ...]
    """Other users' markers in what B got, be it in the words of an error."""

    @property
    def verdict(self) -> Verdict:
        """What it means; a marker in an error counts as a leak too."""
        status = self.decode.status
        if self.leaked:
            return Verdict.LEAKED
        if status is not None and 400 <= status < 500:
            return Verdict.REFUSED
        if status != 200 or self.decode.fault is not None:
            return Verdict.FAILED
        is_right = bool(self.expected) and self.decode.text.startswith(self.expected)
        return Verdict.RIGHT if is_right else Verdict.WRONG
