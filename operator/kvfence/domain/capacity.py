"""How much context a pool can offer, from what each of its KV pools really holds.

The cap C of a revision is

    C = floor_page(headroom x min(prefill pools, decode pools - reserved decode tokens - page) - reserve)

and never above what was asked for, what the model has, or what an engine itself takes. All counts are whole tokens and
all divisions round down, so that C is never too large by a fraction.

Where the terms come from (SGLang 0.5.21 to 0.5.23):

- An engine started with context length L takes prompts shorter than `max_req_input_len = min(L, pool) - 6`
  (`TpModelWorker.get_worker_info`). With C in force the longest prompt has C - 7 tokens.
- Decode admits a request only while `--num-reserved-decode-tokens` (512 unless it is set) stay free beside it, and it
  takes whole pages. A prompt in between is never admitted, and everything behind it in the queue waits with it.
- The page: both sides hand over whole pages, and a pool is a whole number of pages.

An engine's own limit counts too, when it is lower than its pool explains. A limit above its pool explains nothing and
is refused. Limits are those from before any cap was applied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from kvfence.api.declaring import SHORTEST_CONTEXT
from kvfence.api.v1alpha1.pool import ContextPolicy, RoleType

if TYPE_CHECKING:
    from kvfence.api.v1alpha1.pool import PoolSpec

INPUT_MARGIN = 6
"""Tokens between a context length and the first length of a prompt that is refused under it."""


@dataclass(frozen=True, slots=True, order=True)
class PoolId:
    """Which KV pool: one per data-parallel rank of an engine."""

    role: str
    pod: str
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Measured:
    """One KV pool, as the engine's scheduler has it after sizing and before any cap.

    Raises:
        ValueError: such an engine cannot be; the message says why.
    """

    where: PoolId
    type: RoleType
    kv_pool_tokens: int
    """What one request can use at most: `effective_logical_max_total_num_tokens`, times the shards if it is sharded."""
    page_size: int
    """Tokens of a page."""
    max_input_tokens: int
    """`max_req_input_len`: prompts are taken when they are shorter than this."""
    reserved_decode_tokens: int = 0
    """`--num-reserved-decode-tokens` of a decode engine; 0 of a prefill engine."""

    def __post_init__(self) -> None:
        """Refuse what cannot be, so that no number that was misread becomes a cap."""
        if self.type is RoleType.UNIFIED:
            raise ValueError(f"{self.where.pod}: only prefill and decode engines are measured")
        if self.kv_pool_tokens < 1 or self.page_size < 1:
            raise ValueError(f"{self.where.pod}: a KV pool and its pages have at least one token")
        if self.max_input_tokens < 0 or self.reserved_decode_tokens < 0:
            raise ValueError(f"{self.where.pod}: a limit is no negative number")

    @property
    def engine_limit(self) -> int:
        """The largest context length that the engine's own limit on prompts leaves room for."""
        return self.max_input_tokens + INPUT_MARGIN

    @property
    def usable_tokens(self) -> int:
        """What of the pool one request can use, in tokens."""
        if self.type is RoleType.PREFILL:
            return self.kv_pool_tokens
        return max(0, self.kv_pool_tokens - self.reserved_decode_tokens - self.page_size)


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A KV pool that is there and not known. Never a pool of size 0, and never one that does not count."""

    where: PoolId
    type: RoleType
    why: str
    """What stands in the way, as part of a sentence: "its door does not answer"."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the pool's spec says about its context length, in tokens."""

    requested_tokens: int
    minimum_tokens: int = SHORTEST_CONTEXT
    """Below this nothing is admitted."""
    reserve_tokens: int = 0
    headroom_percent: int = 2
    policy: ContextPolicy = ContextPolicy.CAP_TO_FIT
    model_tokens: int | None = None
    """What the model has; `None` when the pool does not say, and then SGLang refuses to start with more."""

    @classmethod
    def of(cls, spec: PoolSpec) -> Self:
        """Read it from the spec of an InferencePool."""
        context = spec.context_length
        return cls(
            requested_tokens=context.requested_tokens,
            minimum_tokens=context.minimum_tokens or SHORTEST_CONTEXT,
            reserve_tokens=context.reserve_tokens,
            headroom_percent=context.headroom_percent,
            policy=context.policy,
            model_tokens=spec.model.max_context_tokens,
        )

    @property
    def ceiling(self) -> int:
        """The most that is offered, whatever fits."""
        if self.model_tokens is None:
            return self.requested_tokens
        return min(self.requested_tokens, self.model_tokens)

    @property
    def floor(self) -> int:
        """The least that is admitted."""
        if self.policy is ContextPolicy.REQUIRE_FIT:
            return max(self.requested_tokens, SHORTEST_CONTEXT)
        return max(self.minimum_tokens, SHORTEST_CONTEXT)


@dataclass(frozen=True, slots=True)
class Offered:
    """The context length to offer."""

    tokens: int
    limit: Measured | None
    """The pool that holds it below what was asked for; `None` when no pool does."""
    left_out: tuple[LeftOut, ...] = ()
    """Pods of a revision that serves already which cannot take part."""


@dataclass(frozen=True, slots=True)
class TooSmall:
    """What fits is less than is admitted."""

    tokens: int
    """What would fit."""
    limit: Measured | None
    """The pool that is too small; `None` when it is the model."""


@dataclass(frozen=True, slots=True)
class Contradictory:
    """The measurements cannot all be right, or not all of one revision."""

    pools: tuple[Measured, ...]
    """One that says more than it has, or two whose pages differ."""


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """A pool that would count is not known, or a type of role has none."""

    missing: tuple[Unmeasured, ...]
    absent: tuple[RoleType, ...]
    """Types of which not one pool is known or announced."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A pod that stays closed while the others serve."""

    role: str
    pod: str
    cause: Measured | Unmeasured
    """The pool of it that is too small, contradictory, or not known."""


Capacity = Offered | TooSmall | Contradictory | NotMeasured


def floor_page(tokens: int, page_size: int) -> int:
    """Return the largest multiple of the page size that is not above `tokens`; 0 for a negative number."""
    return max(0, tokens) // page_size * page_size


def context_that_fits(pool: Measured, wanted: Wanted) -> int:
    """Return what this pool lets the revision offer, headroom and reserve taken off, in tokens."""
    usable = pool.usable_tokens * (100 - wanted.headroom_percent) // 100
    return min(floor_page(usable - wanted.reserve_tokens, pool.page_size), pool.engine_limit)


def holds(pool: Measured, tokens: int, wanted: Wanted) -> bool:
    """Whether the pool still holds a cap that is in force. The headroom may be used up for that, the reserve not."""
    usable = floor_page(pool.usable_tokens - wanted.reserve_tokens, pool.page_size)
    return tokens <= min(usable, pool.engine_limit) and not _says_too_much(pool)


def first_offer(wanted: Wanted, pools: tuple[Measured | Unmeasured, ...]) -> Capacity:
    """Decide what a revision that has not served yet offers. Every pool counts; one that is not known stops it."""
    measured = tuple(pool for pool in pools if isinstance(pool, Measured))
    missing = tuple(pool for pool in pools if isinstance(pool, Unmeasured))
    absent = _absent(pools)
    if missing or absent:
        return NotMeasured(missing, absent)
    if contradiction := _contradiction(measured):
        return contradiction
    smallest = min(measured, key=lambda pool: (context_that_fits(pool, wanted), pool.where))
    fits = context_that_fits(smallest, wanted)
    tokens = min(fits, wanted.ceiling)
    limit = smallest if fits < wanted.ceiling else None
    return Offered(tokens, limit) if tokens >= wanted.floor else TooSmall(tokens, limit)


def next_offer(wanted: Wanted, applied_tokens: int, pools: tuple[Measured | Unmeasured, ...]) -> Capacity:
    """Decide what a revision offers that serves already, with some of its engines started anew.

    The cap never goes up. While every pool still holds it, it stays. A pool that does not hold it, but has enough for
    the pool's minimum, lowers it once for all. A pod with less than that, with a contradiction, or with a pool that is
    not known, is left out, and the others serve on.

    Args:
        wanted: what the spec says now.
        applied_tokens: the cap in force.
        pools: all pools of the revision.
    """
    ceiling = min(applied_tokens, wanted.ceiling)
    left_out = _left_out(wanted, ceiling, pools)
    out = {(one.role, one.pod) for one in left_out}
    kept = tuple(p for p in pools if isinstance(p, Measured) and (p.where.role, p.where.pod) not in out)
    if absent := _absent(kept):
        return _nothing_left(wanted, left_out, absent)
    if contradiction := _contradiction(kept):
        return contradiction
    lowering = [pool for pool in kept if not holds(pool, ceiling, wanted)]
    if not lowering:
        limit = min(kept, key=lambda pool: (context_that_fits(pool, wanted), pool.where))
        tokens = ceiling
    else:
        limit = min(lowering, key=lambda pool: (context_that_fits(pool, wanted), pool.where))
        tokens = context_that_fits(limit, wanted)
    if tokens < wanted.floor:  # the spec asks for more than the cap in force, which cannot go up
        return TooSmall(tokens, limit)
    return Offered(tokens, limit if tokens < wanted.ceiling else None, left_out)


def _says_too_much(pool: Measured) -> bool:
    return pool.engine_limit > pool.kv_pool_tokens


def _absent(pools: tuple[Measured | Unmeasured, ...]) -> tuple[RoleType, ...]:
    present = {pool.type for pool in pools}
    return tuple(kind for kind in (RoleType.PREFILL, RoleType.DECODE) if kind not in present)


def _contradiction(measured: tuple[Measured, ...]) -> Contradictory | None:
    ordered = sorted(measured, key=lambda pool: pool.where)
    for pool in ordered:
        if _says_too_much(pool):
            return Contradictory((pool,))
        if pool.page_size != ordered[0].page_size:
            return Contradictory((ordered[0], pool))
    return None


def _left_out(wanted: Wanted, ceiling: int, pools: tuple[Measured | Unmeasured, ...]) -> tuple[LeftOut, ...]:
    """One entry per pod that cannot take part: an engine with one rank too small is out with all its ranks."""
    found: dict[tuple[str, str], LeftOut] = {}
    for pool in sorted(pools, key=lambda one: one.where):
        if isinstance(pool, Measured) and not _says_too_much(pool):
            enough = holds(pool, ceiling, wanted) or context_that_fits(pool, wanted) >= wanted.floor
            if enough:
                continue
        key = (pool.where.role, pool.where.pod)
        found.setdefault(key, LeftOut(*key, pool))
    return tuple(found.values())


def _nothing_left(wanted: Wanted, left_out: tuple[LeftOut, ...], absent: tuple[RoleType, ...]) -> Capacity:
    """Say why no engine of a type is left: what is not known comes first, then what contradicts, then what is small."""
    causes = [one.cause for one in left_out if one.cause.type in absent]
    missing = tuple(cause for cause in causes if isinstance(cause, Unmeasured))
    unheard = tuple(kind for kind in absent if kind not in {cause.type for cause in causes})
    if missing or unheard:
        return NotMeasured(missing, unheard)
    measured = [cause for cause in causes if isinstance(cause, Measured)]
    for cause in measured:
        if _says_too_much(cause):
            return Contradictory((cause,))
    best = max(measured, key=lambda pool: (context_that_fits(pool, wanted), pool.where))
    return TooSmall(context_that_fits(best, wanted), best)
