"""Numbers in logs: whole, in range, and not cut off."""

from __future__ import annotations

import re

from kvfence.engine.fields import LARGEST

DIGITS = r"-?(?:[0-9]{1,3}(?:[,_][0-9]{3})+|[0-9]{1,40})"
END = r"(?=,(?:\s|$|[A-Za-z_])|\s|$)(?!,?\s+[0-9])"
"""Behind a number: anything that could be more of it makes it none (`1 061 980`, `13...`)."""


MOST_DIGITS = 30
"""Characters of a number that is looked at: far above what is in range."""

TAIL = 200
"""Characters at the end of a record in which its last word is looked for."""

_LAST_WORD = re.compile(r"(?:[0-9,_.']{0,40}[0-9]\s{1,9}){0,8}\S{0,200}$")
"""The last word, and groups of digits in front of it."""


def without_last_word(body: str) -> str:
    """Return a record without what may have been cut off in the middle."""
    tail = body[-TAIL:]
    match = _LAST_WORD.search(tail)
    return body[:-TAIL] + tail[: match.start() if match is not None else 0]


def count(text: str | None) -> int | None:
    """Return how many tokens a text says; none for what no pool or context can have."""
    if text is None:
        return None
    if len(text) > MOST_DIGITS:
        return None
    number = int(text.replace(",", "").replace("_", ""))
    return number if 0 < number < LARGEST else None
