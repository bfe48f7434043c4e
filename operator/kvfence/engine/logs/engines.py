"""From the facts of one process's log to the engines in it: one for each rank of data parallelism."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.diagnosis.seen import NOTHING, EngineSeen, Product
from kvfence.engine.logs.boots import Boot, boots
from kvfence.engine.logs.facts import SIZES, Kind
from kvfence.engine.logs.order import timeline
from kvfence.engine.logs.sizes import SEVERAL, announced, context, input_limit, pool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvfence.engine.logs.facts import Fact
    from kvfence.engine.logs.order import Moment

_ROLES = {"prefill": RoleType.PREFILL, "decode": RoleType.DECODE, "null": RoleType.UNIFIED}
_DECISIVE = frozenset({Kind.SERVER_ARGS, Kind.LOADING, Kind.SUMMARY, Kind.READY, Kind.FAILED, Kind.TRACEBACK, *SIZES})
_MARKS = frozenset({Kind.SERVER_ARGS, Kind.LOADING, Kind.READY})
"""They tell starts apart: where one of them may be a user's, or the engine's, nothing is told."""

_OF_A_RANK = frozenset({*SIZES, Kind.SUMMARY, Kind.WARNING, Kind.SETTLED, Kind.LOADING, Kind.OTHER, Kind.BOUND})

FORGOTTEN = "The log holds too many lines of an engine's start to tell which of them is the last one's: cut it down."
UNORDERED = "The log holds several starts, its lines stand in no order, and some of them tell no time."
BROKEN = "Lines of JSON in it are cut off, and what they said of the engine is not known."
TAINTED = "Behind a user's words stand lines that look like the engine's, all in one line: they cannot be told apart."


def engines(facts: Sequence[Fact], *, tainted: bool, forgotten: bool, broken: bool) -> list[EngineSeen]:
    """Return what a log tells of each engine. Sources are not filled in; roles are, where they are told."""
    facts, forged = _believed(facts)
    tainted = tainted or forged
    products = {fact.said.product for fact in facts} - {None}
    if not products:
        return []
    product = next(iter(products)) if len(products) == 1 else None
    line = timeline(facts)
    starts = boots(line)
    unclear = [word for word, so in ((TAINTED, tainted), (BROKEN, broken)) if so]
    if forgotten and (line.sorted or len(starts) == 1):
        unclear.append(FORGOTTEN)
    if line.sorted and len(starts) > 1 and any(m.at is None and m.fact.kind in _DECISIVE for m in line.moments):
        unclear.append(UNORDERED)
    found: list[EngineSeen] = []
    for boot in _counting(starts):
        doubts = [*boot.doubts, *unclear]
        if product is None:
            doubts.append("Lines of SGLang and of vLLM stand in one log, and it is not told whose the sizes are.")
        reader = _Reader(boot, product, line.shuffled, doubts, len(starts))
        found += [reader.engine(rank) for rank in _ranks(facts if len(starts) == 1 else [m.fact for m in boot.moments])]
    return found


def _believed(facts: Sequence[Fact]) -> tuple[list[Fact], bool]:
    """Return the facts that are the engine's, and whether others stand among them that may be a user's.

    Behind its readiness an engine that marks its lines is known by the marks: there bare lines are a user's.
    """
    first_ready = next((i for i, fact in enumerate(facts) if fact.kind is Kind.READY), len(facts))
    marked = any(fact.prefix.own and fact.kind in _OF_A_RANK for fact in facts[:first_ready])
    kept = [fact for fact in facts if not fact.doubtful]
    return kept, any(
        fact.doubtful and (fact.prefix.own or fact.kind in _MARKS or not marked or i <= first_ready)
        for i, fact in enumerate(facts)
    )


def _counting(starts: list[Boot]) -> list[Boot]:
    """Return the starts that count: the last one, or the last of each half when both halves of a pair are there."""
    halves = {boot.mode: boot for boot in starts if boot.mode in ("prefill", "decode")}
    both = len(halves) == 2 and all(boot.mode in halves or not boot.moments for boot in starts)
    return list(halves.values()) if both else [starts[-1]]


def _ranks(facts: Sequence[Fact]) -> list[int | None]:
    """Return the ranks that a start has: of data parallelism where they are told."""
    told = sorted({fact.prefix.rank for fact in facts if fact.prefix.rank is not None})
    untold = any(fact.prefix.rank is None and fact.kind in {*SIZES, Kind.SUMMARY, Kind.WARNING} for fact in facts)
    return [*([None] if untold or not told else []), *told]


class _Reader:
    """Reads one start."""

    def __init__(
        self,
        boot: Boot,
        product: Product | None,
        shuffled: bool,
        doubts: list[str],
        starts: int,
    ) -> None:
        self._boot, self._product, self._shuffled = boot, product, shuffled
        self._doubts = doubts
        self._starts = starts

    def engine(self, rank: int | None) -> EngineSeen:
        """Return what the start tells of one rank."""
        moments = self._moments(rank)
        size, length = pool(moments, self._boot, shuffled=self._shuffled), context(moments)
        limit = input_limit(moments, size.tokens, length.tokens)
        notes = [*self._doubts, *(one.why for one in (size, length, limit) if one.why)]
        started = self._started(size.tokens, length.tokens)
        known = started is not False and not self._doubts
        if started is False:
            notes = [self._failure(moments)]
        if self._boot.crashed:
            notes.append("It failed after it had been ready.")
        if self._starts > 1:
            notes.append(f"The log holds {self._starts} starts; the last one counts.")
        settings = self._settings()
        return EngineSeen(
            source="",
            rank=rank,
            product=self._product,
            version=self._version(),
            started=started,
            role=self._role(settings),
            kv_pool_tokens=size.tokens if known else None,
            context_length=length.tokens if known else None,
            told_input_limit=limit.tokens if known else None,
            page_size=_count(settings.get("page_size")),
            reserved_decode_tokens=_count(settings.get("num_reserved_decode_tokens")),
            settings=settings,
            keys_shown=tuple(sorted({key for m in self._boot.moments for key in m.fact.said.keys_shown})),
            notes=tuple(dict.fromkeys(notes)),
        )

    def _moments(self, rank: int | None) -> list[Moment]:
        """Return what was said of the rank, without what anybody can have written once users were let in."""
        boot = self._boot
        own = any(m.fact.prefix.own and m.fact.kind in _OF_A_RANK for m in boot.moments)
        first_ready = next((i for i, m in enumerate(boot.moments) if m.fact.kind is Kind.READY), len(boot.moments))
        found = []
        for index, moment in enumerate(boot.moments):
            prefix, kind = moment.fact.prefix, moment.fact.kind
            foreign = own and not prefix.own and (index > first_ready or kind is Kind.INPUT_LIMIT)
            whole = kind in (Kind.CONTEXT, Kind.SERVER_ARGS, Kind.BLOCK_SIZE) and prefix.rank is None
            if not foreign and (prefix.rank == rank or whole):
                found.append(moment)
        return found

    def _started(self, size: int | None, length: int | None) -> bool | None:
        boot = self._boot
        if self._doubts:
            return None
        if boot.failed is not None:
            return False
        summary = size is not None and length is not None and boot.has(Kind.SUMMARY)
        return True if boot.ready or summary else None

    def _failure(self, moments: Sequence[Moment]) -> str:
        word = (self._boot.failed.fact.said.word if self._boot.failed else "") or "the log ends in a traceback"
        tokens = announced(moments)
        had = "" if tokens is None else f" It had announced a KV pool of {tokens} tokens."
        return f"The engine did not start: {word}.{had}"

    def _version(self) -> str | None:
        found = {m.fact.said.word for m in self._boot.moments if m.fact.kind is Kind.VERSION}
        found |= {
            m.fact.said.word
            for m in self._boot.moments
            if m.fact.kind is Kind.SERVER_ARGS and m.fact.said.product is Product.VLLM
        }
        return next(iter(found)) if len(found) == 1 else None

    def _settings(self) -> Mapping[str, Any]:
        told = [m.fact.said.settings for m in self._boot.moments if m.fact.kind is Kind.SERVER_ARGS]
        told = [settings for settings in told if settings]
        same = told and all(settings == told[0] for settings in told)
        return told[-1] if same or len(told) == 1 else NOTHING

    def _role(self, settings: Mapping[str, Any]) -> RoleType | None:
        roles = {m.fact.prefix.role for m in self._boot.moments} - {None}
        if len(roles) == 1:
            return next(iter(roles))
        mode = settings.get("disaggregation_mode", self._boot.mode)
        return _ROLES.get(mode) if isinstance(mode, str) else None


def _count(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None


__all__ = ["SEVERAL", "TAINTED", "engines"]
