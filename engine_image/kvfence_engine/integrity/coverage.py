"""Whether what prefill handed over is what decode made room for. SGLang compares the room and nothing else.

Where it is not, decode would read pages that nobody wrote, or KV of another prompt.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvfence_engine.integrity.handover import HandOver


class Mismatch(str, Enum):
    """What is wrong with a hand-over."""

    NO_HAND_OVER = "NoHandOver"
    """Prefill said nothing of this room."""
    TOKENS_DIFFER = "TokensDiffer"
    """The prompt is longer or shorter on prefill: the two sides cut it, or made tokens of it, in different ways."""
    OTHER_PROMPT = "OtherPrompt"
    """The same number of tokens, but other ones, or in another namespace."""
    OTHER_START = "OtherStart"
    """Prefill left out another prefix than the one that decode has."""
    HANDED_SHORT = "HandedShort"
    """Tokens at the end of the prompt are missing."""
    HANDED_LONG = "HandedLong"
    """More than the prompt."""


def judge(handover: HandOver | None, *, tokens: int, start: int, digest: int) -> Mismatch | None:
    """Return what is wrong with a hand-over, the most telling first; none when nothing is.

    Args:
        handover: what prefill said; none when it said nothing.
        tokens: length of the prompt as decode has it, for which it made room.
        start: how many tokens of these decode had already.
        digest: of the prompt and its namespace as decode has them.
    """
    if handover is None:
        return Mismatch.NO_HAND_OVER
    checks = (
        (handover.tokens != tokens, Mismatch.TOKENS_DIFFER),  # then its digest and its end differ as well
        (handover.digest != digest, Mismatch.OTHER_PROMPT),
        (handover.start != start, Mismatch.OTHER_START),
        (handover.end < tokens, Mismatch.HANDED_SHORT),
        (handover.end > tokens, Mismatch.HANDED_LONG),
    )
    return next((mismatch for differs, mismatch in checks if differs), None)


def covered(handover: HandOver | None) -> int:
    """Return the token up to which KV arrived; 0 when prefill said nothing."""
    return handover.end if handover else 0
