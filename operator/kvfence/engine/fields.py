"""Reads fields of JSON from servers that are not trusted: of the type that was meant and in range, or not at all."""

from __future__ import annotations

import json
from typing import Any

LARGEST = 2**53
"""Numbers are below it: greater ones mean something else to other readers of JSON."""

NAME_LIMIT = 300
"""Characters of a name, nonce or address."""


def read_object(raw: bytes, what: str) -> dict[str, Any]:
    """Return the JSON object that the bytes are.

    Raises:
        ValueError: when they are none. The message quotes nothing of them.
    """
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise ValueError(f"{what} is not a JSON object")  # noqa: TRY004 - of the answer, not of our code
    return fields


def number(value: object) -> int | None:
    """Return a whole number from 0; none for anything else."""
    return value if type(value) is int and 0 <= value < LARGEST else None


def text(value: object, limit: int = NAME_LIMIT) -> str | None:
    """Return printable text of at most so many characters; none for anything else."""
    return value if isinstance(value, str) and len(value) <= limit and value.isprintable() else None


def truth(value: object) -> bool | None:
    """Return true or false; none for anything else."""
    return value if isinstance(value, bool) else None


def texts(value: object) -> tuple[str, ...] | None:
    """Return a list of such texts; none when it is no list or one of them is none."""
    if not isinstance(value, list):
        return None
    found = tuple(one for item in value if (one := text(item)) is not None)
    return found if len(found) == len(value) else None
