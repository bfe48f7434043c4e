"""The gate ContextFits: says in words what `capacity` decided, and what to do about it."""

from __future__ import annotations

from kvfence.api.declaring import SHORTEST_CONTEXT
from kvfence.api.v1alpha1.conditions import ConditionStatus, ConditionType
from kvfence.api.v1alpha1.pool import ContextPolicy
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.domain.capacity import (
    Capacity,
    Contradictory,
    LeftOut,
    Measured,
    NotMeasured,
    Offered,
    PoolId,
    TooSmall,
    Unmeasured,
    Wanted,
    context_that_fits,
)
from kvfence.domain.findings import Finding

NAMED = 3
"""How many pods a message names; a message does not grow with the pool."""

MORE_MEMORY = "give its engines more memory for KV (--mem-fraction-static, --max-total-tokens, more parallelism)"


def context_fits(capacity: Capacity, wanted: Wanted) -> Finding:
    """Return the condition ContextFits."""
    match capacity:
        case Offered(tokens, None, left_out) if tokens >= wanted.requested_tokens:
            return _finding(
                ConditionStatus.TRUE,
                Reason.REQUESTED_CONTEXT_FITS,
                f"All {tokens:,} tokens asked for fit into every KV pool.{_left_out(left_out)}",
            )
        case Offered(tokens, limit, left_out):
            return _finding(
                ConditionStatus.TRUE,
                Reason.CONTEXT_CAPPED,
                f"{tokens:,} of the {wanted.requested_tokens:,} tokens asked for are on offer: "
                f"{_limit(tokens, limit, wanted)}."
                f"{_left_out(left_out)}",
            )
        case TooSmall(tokens, limit):
            return _too_small(tokens, limit, wanted)
        case Contradictory(pools):
            return _contradictory(pools)
        case NotMeasured(missing, absent):
            waiting = [_not_known(one) for one in missing[:NAMED]] + _others(len(missing))
            waiting += [f"no engine of type {kind} is there" for kind in absent]
            return _finding(
                ConditionStatus.UNKNOWN,
                Reason.POOLS_NOT_MEASURED,
                f"Not every KV pool is known, and nothing is admitted until it is: {'; '.join(waiting)}. Look at these "
                "pods and their logs if it stays so.",
            )


def _finding(status: ConditionStatus, reason: Reason, message: str) -> Finding:
    return Finding(ConditionType.CONTEXT_FITS, status, reason, message)


def _too_small(tokens: int, limit: Measured | None, wanted: Wanted) -> Finding:
    if tokens < SHORTEST_CONTEXT:
        reason = Reason.NO_CONTEXT_FITS
        asked = f"and no prompt fits into less than {SHORTEST_CONTEXT}"
        remedy = "lower contextLength.reserveTokens or contextLength.headroomPercent"
    elif wanted.policy is ContextPolicy.REQUIRE_FIT:
        reason = Reason.REQUESTED_CONTEXT_DOES_NOT_FIT
        asked = f"and contextLength.policy RequireFit asks for {wanted.requested_tokens:,}"
        remedy = f"lower contextLength.requestedTokens to {tokens:,}, or set contextLength.policy to CapToFit"
    else:
        reason = Reason.MINIMUM_CONTEXT_DOES_NOT_FIT
        asked = f"and contextLength.minimumTokens is {wanted.minimum_tokens:,}"
        remedy = f"lower contextLength.minimumTokens to {tokens:,}"
    first = f"{MORE_MEMORY}, or " if limit is not None else ""
    why = _limit(tokens, limit, wanted)
    message = f"{tokens:,} tokens fit, {asked}: {why}. Nothing is admitted. To go on, {first}{remedy}."
    return _finding(ConditionStatus.FALSE, reason, message)


def _contradictory(pools: tuple[Measured, ...]) -> Finding:
    if len(pools) == 1:
        (pool,) = pools
        return _finding(
            ConditionStatus.FALSE,
            Reason.ENGINE_LIMIT_ABOVE_POOL,
            f"{_name(pool.where)} takes prompts of up to {max(0, pool.max_input_tokens - 1):,} tokens, and its KV pool "
            f"holds {pool.kv_pool_tokens:,}. Nothing of it is admitted. Remove what makes the engine count in another "
            "way (engine.sglang.args, or the role's args), or use another release of SGLang.",
        )
    one, other = pools
    return _finding(
        ConditionStatus.FALSE,
        Reason.PAGE_SIZES_DIFFER,
        f"{_name(one.where)} has pages of {one.page_size:,} tokens, and {_name(other.where)} of {other.page_size:,}. "
        "Nothing is admitted. Set --page-size once, in engine.sglang.args.",
    )


def _limit(tokens: int, limit: Measured | None, wanted: Wanted) -> str:
    if limit is None:
        return f"the model has {wanted.ceiling:,} (model.maxContextTokens)"
    if context_that_fits(limit, wanted) > tokens:
        return (
            "this is the cap of the revision, which only goes down; a change to the engine, the model or the roles "
            "makes a new revision, and that is measured anew"
        )
    size = f"{_name(limit.where)} has a KV pool of {limit.kv_pool_tokens:,} tokens"
    if context_that_fits(limit, wanted) == limit.engine_limit < limit.usable_tokens:
        return f"{size}, but takes prompts shorter than {limit.max_input_tokens:,} only"
    kept = [f"{wanted.headroom_percent} % stay free as headroom"] if wanted.headroom_percent else []
    if wanted.reserve_tokens:
        kept.append(f"{wanted.reserve_tokens:,} are reserved")
    if limit.usable_tokens < limit.kv_pool_tokens:
        kept.insert(0, f"decode keeps {limit.kv_pool_tokens - limit.usable_tokens:,} for requests under way")
    return f"{size}, of which {', '.join(kept)}" if kept else size


def _left_out(left_out: tuple[LeftOut, ...]) -> str:
    if not left_out:
        return ""
    words = [
        _not_known(one.cause)
        if isinstance(one.cause, Unmeasured)
        else f"{_name(one.cause.where)} has {one.cause.kv_pool_tokens:,} tokens"
        for one in left_out[:NAMED]
    ]
    return f" Left out for now: {'; '.join(words + _others(len(left_out)))}."


def _others(count: int) -> list[str]:
    return [f"{count - NAMED} more"] if count > NAMED else []


def _not_known(pool: Unmeasured) -> str:
    return f"{_name(pool.where)}: {pool.why}"


def _name(where: PoolId) -> str:
    rank = f", rank {where.rank}" if where.rank else ""
    return f"pod {where.pod} (role {where.role}{rank})"
