"""Turns what engines say into the KV pools that `capacity` counts with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.capacity import Capacity, Measured, Offered, PoolId, Unmeasured, first_offer, next_offer
from kvfence.domain.roles_ready import NOT_ASKED

if TYPE_CHECKING:
    from kvfence.domain.engines import Engine, Rank
    from kvfence.domain.observed import Observed


def capacity(observed: Observed) -> Capacity:
    """Decide what the pool can offer; a cap that is in force does not go up again."""
    pools = tuple(pool for engine in observed.engines for pool in pools_of(engine))
    applied = observed.applied_tokens
    if applied is None:
        return first_offer(observed.wanted, pools)
    if observed.serving:
        return next_offer(observed.wanted, applied, pools)
    first = first_offer(observed.wanted, pools)
    if isinstance(first, Offered) and first.tokens > applied:  # an operator before this one sent it to some doors
        return next_offer(observed.wanted, applied, pools)
    return first


def pools_of(engine: Engine) -> tuple[Measured | Unmeasured, ...]:
    """Return one pool per rank of an engine, or one that is not known."""
    if not engine.pod.started:
        return (_unmeasured(engine, "it has not started"),)
    if engine.boot is None or engine.facts is None:
        return (_unmeasured(engine, engine.silent or NOT_ASKED),)
    if not engine.boot.ranks:
        return (_unmeasured(engine, "its door reports no KV pool"),)
    return tuple(_pool(engine, rank) for rank in engine.boot.ranks)


def _pool(engine: Engine, rank: Rank) -> Measured | Unmeasured:
    assert engine.facts is not None
    reserved = engine.facts.reserved_decode_tokens if engine.type is RoleType.DECODE else 0
    if reserved is None:
        return _unmeasured(engine, "its server does not report --num-reserved-decode-tokens", rank.index)
    try:
        return Measured(
            PoolId(engine.pod.role, engine.name, rank.index),
            engine.type,
            kv_pool_tokens=rank.pool_tokens,
            page_size=rank.page_size,
            max_input_tokens=rank.boot_input_limit,
            reserved_decode_tokens=reserved,
        )
    except ValueError as error:
        return _unmeasured(engine, f"what it reports cannot be ({error})", rank.index)


def _unmeasured(engine: Engine, why: str, rank: int = 0) -> Unmeasured:
    return Unmeasured(PoolId(engine.pod.role, engine.name, rank), engine.type, why)
