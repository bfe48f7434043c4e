"""Text from outside, made fit for a line of ours. Pure."""

from __future__ import annotations

DETAIL_LIMIT = 300
"""Characters that are kept of an error's text."""
LINE_LIMIT = 2000
"""Characters that are kept of anything else; a sentence about many engines has some hundred."""


def printable(text: str, limit: int = LINE_LIMIT) -> str:
    """Return a text on one line without control characters, marks of direction and halves of surrogates.

    Whoever writes a log must not write on the screen of who reads it.

    Args:
        text: from anywhere.
        limit: characters that are kept; what is longer ends in an ellipsis.
    """
    cut = text if len(text) <= limit else text[: limit - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return "".join(character if character.isprintable() else " " for character in cut)
