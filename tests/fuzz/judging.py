"""Compares what is read in a changed log with what was read in it before."""

from __future__ import annotations

import io
from dataclasses import dataclass
from enum import StrEnum

from kvfence.domain.diagnosis.seen import EngineSeen, Unreadable
from kvfence.engine.logs import read

OTHER = "pod/other"
OTHER_POOL = 31337
OTHER_CONTEXT = 65537
"""Of an engine whose lines stand among those of a log."""

Told = tuple[EngineSeen | Unreadable, ...]


class Score(StrEnum):
    """How a changed log came off."""

    KEPT = "kept"
    UNKNOWN = "cannot tell"
    WRONG = "WRONG"


@dataclass(frozen=True, slots=True)
class Answers:
    """What may be said of the engines of one log."""

    pools: dict[int | None, frozenset[int | None]]
    contexts: dict[int | None, frozenset[int | None]]
    started: frozenset[bool | None]


def told(raw: bytes) -> Told:
    """Read a log."""
    return read(io.BytesIO(raw), "fuzz")


def answers(before: Told) -> Answers:
    """Return what a log tells before it is changed."""
    pools: dict[int | None, set[int | None]] = {}
    contexts: dict[int | None, set[int | None]] = {}
    for one in before:
        if isinstance(one, EngineSeen):
            pools.setdefault(one.rank, set()).add(one.kv_pool_tokens)
            contexts.setdefault(one.rank, set()).add(one.context_length)
    return Answers(
        {rank: frozenset(found) for rank, found in pools.items()},
        {rank: frozenset(found) for rank, found in contexts.items()},
        frozenset(one.started for one in before if isinstance(one, EngineSeen)),
    )


def judge(right: Answers, after: Told, announced: int | None = None, *, may_fail: bool = False) -> Score:
    """Return how a changed log came off. `announced` is what a log whose failure was cut away may still tell.

    `may_fail`: an earlier start of the log failed, and nothing else may be left of it.
    """
    engines = [one for one in after if isinstance(one, EngineSeen)]
    beside = [one for one in engines if OTHER in one.source]
    if any(one.kv_pool_tokens not in (None, OTHER_POOL) for one in beside):
        return Score.WRONG
    engines = [one for one in engines if one not in beside]
    for one in engines:
        pools = right.pools.get(one.rank, frozenset()) | {announced}
        if one.kv_pool_tokens is not None and one.kv_pool_tokens not in pools:
            return Score.WRONG
        if one.context_length is not None and one.context_length not in right.contexts.get(one.rank, frozenset()):
            return Score.WRONG
        if one.started is False and right.started == {True} and not may_fail:
            return Score.WRONG
        if one.started is True and right.started == {False}:
            return Score.WRONG
    now = answers(tuple(engines))
    same = all(now.pools.get(rank, frozenset()) >= sizes for rank, sizes in right.pools.items())
    same = same and all(now.contexts.get(rank, frozenset()) >= sizes for rank, sizes in right.contexts.items())
    return Score.KEPT if same else Score.UNKNOWN
