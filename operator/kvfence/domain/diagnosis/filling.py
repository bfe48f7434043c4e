"""One engine told of by two sources, the better one first. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from kvfence.domain.diagnosis.seen import EngineSeen


def filled(engine: EngineSeen, other: EngineSeen) -> EngineSeen:
    """Return what the first tells, with what it does not tell from the second.

    Settings and variables are filled in one by one; names of keys and notes of both are kept. Of ranks that are not
    told of the larger number counts: neither source is known to have named those that the other misses.
    """
    told = {one.name: _both(getattr(engine, one.name), getattr(other, one.name)) for one in fields(EngineSeen)}
    told["ranks_untold"] = max(engine.ranks_untold, other.ranks_untold)
    return replace(engine, **told)


def _both(mine: Any, others: Any) -> Any:
    if mine is None:
        return others
    if isinstance(mine, Mapping):
        return {**others, **mine}
    return tuple(dict.fromkeys((*mine, *others))) if isinstance(mine, tuple) else mine
