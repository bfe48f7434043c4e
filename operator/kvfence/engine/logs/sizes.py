"""Which of the sizes that one rank announced in one start bounds a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvfence.domain.capacity import INPUT_MARGIN
from kvfence.domain.diagnosis.seen import Product
from kvfence.engine.logs.facts import SIZES, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kvfence.engine.logs.boots import Boot
    from kvfence.engine.logs.facts import Fact
    from kvfence.engine.logs.order import Moment

SEVERAL = "It announced several sizes of its KV pool in one start, and it is not told which one holds."
GARBLED = "A size in its log is no number that a KV pool can have, or contradicts itself in one line."
NOT_FINAL = "The size in its log may still have changed: the log ends before memory was given out."
NO_BLOCK_SIZE = "Its pool is told in blocks, and not how many tokens a block holds."
CONTEXTS = "It announced several context lengths in one start, and it is not told which one holds."
LIMITS = "It named several limits for a prompt, or one that its pool and context do not allow."


@dataclass(frozen=True, slots=True)
class Size:
    """A number, or why it is not known; neither where nothing was said."""

    tokens: int | None = None
    why: str = ""


def pool(moments: Sequence[Moment], boot: Boot, *, shuffled: bool) -> Size:
    """Return the size of the pool that one rank ended up with."""
    for kinds in ((Kind.SUMMARY, Kind.WARNING), (Kind.RESIZED,), (Kind.FULL, Kind.FULL_ESTIMATE)):
        said = [m for m in moments if m.fact.kind in kinds]
        if any(m.fact.said.garbled for m in said):
            return Size(why=GARBLED)
        said = [m for m in said if m.fact.said.pool is not None]
        if not said:
            continue
        if Kind.SUMMARY in kinds:
            return _agreed(m.fact for m in said)
        return _last(said, boot, shuffled=shuffled) if _final(kinds, boot) else Size(why=NOT_FINAL)
    said = [m for m in moments if m.fact.kind is Kind.ALLOCATED]
    if not said:
        return _blocks(moments, boot)
    if boot.has(Kind.BOUND):
        return Size(why=NOT_FINAL)
    return Size(why=GARBLED) if any(m.fact.said.garbled for m in said) else _agreed(m.fact for m in said)


def _final(kinds: Iterable[Kind], boot: Boot) -> bool:
    return Kind.RESIZED in kinds or not boot.has(Kind.BOUND)


def _agreed(facts: Iterable[Fact]) -> Size:
    """Return the smallest over the ranks that share the pool, when each of them said one size."""
    sizes: dict[str, set[int]] = {}
    for fact in facts:
        sizes.setdefault(fact.prefix.tags, set()).add(fact.said.pool or 0)
    everything = set().union(*sizes.values())
    unclear = any(len(found) > 1 for found in sizes.values()) or ("" in sizes and len(everything) > 1)
    return Size(why=SEVERAL) if unclear else Size(min(everything))


def _last(said: Sequence[Moment], boot: Boot, *, shuffled: bool) -> Size:
    """Return the smallest over the ranks of what each of them said last."""
    last: dict[str, Moment] = {}
    for moment in said:
        before = last.get(moment.fact.prefix.tags)
        if before is not None and shuffled and _at_once(before, moment):
            return Size(why=SEVERAL)
        last[moment.fact.prefix.tags] = moment
    estimated = any(moment.fact.kind is Kind.FULL_ESTIMATE for moment in last.values())
    if estimated and not boot.has(Kind.SETTLED, Kind.READY):
        return Size(why=NOT_FINAL)
    return Size(min(moment.fact.said.pool or 0 for moment in last.values()))


def _at_once(one: Moment, other: Moment) -> bool:
    """Tell whether two sizes differ and nothing says which came first."""
    differ = one.fact.said.pool != other.fact.said.pool
    return differ and (one.at is None or other.at is None or one.at == other.at)


def _blocks(moments: Sequence[Moment], boot: Boot) -> Size:
    blocks = {m.fact.said.pool for m in moments if m.fact.kind is Kind.BLOCKS}
    sizes = {m.fact.said.pool for m in boot.moments if m.fact.kind is Kind.BLOCK_SIZE} - {None}
    if not blocks:
        return Size()
    if len(blocks) > 1 or None in blocks:
        return Size(why=SEVERAL if len(blocks) > 1 else GARBLED)
    if len(sizes) != 1:
        return Size(why=NO_BLOCK_SIZE)
    return Size((blocks.pop() or 0) * (sizes.pop() or 0))


def context(moments: Sequence[Moment]) -> Size:
    """Return the context length that was announced as the result, not as a wish."""
    said = [m.fact.said for m in moments if m.fact.kind in (Kind.SUMMARY, Kind.WARNING, Kind.CONTEXT)]
    vllm = [m.fact.said for m in moments if m.fact.said.product is Product.VLLM]
    said += [one for one in vllm if one.kind in (Kind.SERVER_ARGS, Kind.ALLOCATED)]
    if any(one.garbled for one in said):
        return Size(why=GARBLED)
    found = {one.context for one in said} - {None}
    return Size(why=CONTEXTS) if len(found) > 1 else Size(next(iter(found), None))


def input_limit(moments: Sequence[Moment], pool_tokens: int | None, context_length: int | None) -> Size:
    """Return the length that prompts must stay below, where a line says it."""
    said = [m.fact.said for m in moments if m.fact.kind in (Kind.INPUT_LIMIT, Kind.SUMMARY)]
    found = {one.limit for one in said} - {None}
    if len(found) > 1:
        return Size(why=LIMITS)
    limit = next(iter(found), None)
    most = min((size for size in (pool_tokens, context_length) if size is not None), default=None)
    if limit is not None and most is not None and limit > most - INPUT_MARGIN:
        return Size(why=LIMITS)
    return Size(limit)


def announced(moments: Sequence[Moment]) -> int | None:
    """Return the last size that was announced at all, for people to read."""
    kinds = (*SIZES - {Kind.BLOCKS}, Kind.SUMMARY)
    found = [m.fact.said.pool for m in moments if m.fact.kind in kinds and m.fact.said.pool is not None]
    return found[-1] if found else None
