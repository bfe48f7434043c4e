"""Reads logs that stand in tests."""

from __future__ import annotations

import io
from textwrap import dedent

from kvfence.domain.diagnosis.seen import EngineSeen, Unreadable
from kvfence.engine.logs import read


def seen(text: str | bytes, source: str = "a.log") -> tuple[EngineSeen | Unreadable, ...]:
    """Read text as a log."""
    raw = dedent(text).encode() if isinstance(text, str) else text
    return read(io.BytesIO(raw), source)


def engines(text: str | bytes, source: str = "a.log") -> list[EngineSeen]:
    """Return the engines in it."""
    return [one for one in seen(text, source) if isinstance(one, EngineSeen)]


def one(text: str | bytes) -> EngineSeen:
    """Return the only engine in it."""
    found = engines(text)
    assert len(found) == 1, found
    return found[0]


def sizes(text: str | bytes) -> list[tuple[int | None, int | None]]:
    """Return pool and context of each engine in it."""
    return [(engine.kv_pool_tokens, engine.context_length) for engine in engines(text)]
