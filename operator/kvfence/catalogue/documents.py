"""Reads JSON strictly: no name twice in one object, no NaN, nothing too deep."""

from __future__ import annotations

import json
from typing import Any, NoReturn


def read(raw: bytes, what: str) -> Any:
    """Return what the bytes say.

    Raises:
        ValueError: they are no JSON, or some that readers understand differently. Quotes nothing of them.
    """
    try:
        return json.loads(raw, object_pairs_hook=_object, parse_constant=_constant)
    except _AmbiguousError as error:
        raise ValueError(f"{what} is not taken: {error}.") from None
    except (ValueError, RecursionError):
        raise ValueError(f"{what} is no JSON.") from None


class _AmbiguousError(ValueError):
    """Readers of JSON differ about it."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _AmbiguousError("an object in it has a name twice")
    return found


def _constant(_: str) -> NoReturn:
    raise _AmbiguousError("it has a number that is none")
