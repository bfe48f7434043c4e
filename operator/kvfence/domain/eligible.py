"""Which engines may be let in, as far as each can be judged by itself; and who is proven with whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.capacity import Offered
from kvfence.domain.engine_allowed import version_of
from kvfence.domain.integrity import integrity_of
from kvfence.domain.roles_ready import answers

if TYPE_CHECKING:
    from kvfence.domain.capacity import Capacity
    from kvfence.domain.engines import Engine
    from kvfence.domain.observed import Observed


def eligible(observed: Observed, capacity: Capacity) -> tuple[Engine, ...]:
    """Return the engines that pass every gate which judges one engine alone."""
    out = {one.pod for one in capacity.left_out} if isinstance(capacity, Offered) else set()
    return tuple(
        engine
        for engine in observed.engines
        if answers(engine)
        and not engine.is_shut
        and engine.name not in out
        and version_of(engine, observed).holds
        and integrity_of(engine, observed).holds
    )


def is_proven(engine: Engine, observed: Observed, cap: int | None) -> bool:
    """Whether a boot was proven: under this cap, or before it was let in. One that failed is not, open or not."""
    if engine.boot is None:
        return engine.is_let_in
    if observed.known.is_condemned(engine.boot.nonces):
        return False
    return engine.is_open or (cap is not None and observed.known.is_proven(engine.boot.nonces, cap))


def pairs_to_prove(observed: Observed, engines: tuple[Engine, ...], cap: int) -> tuple[tuple[Engine, Engine], ...]:
    """Return directed pairs, prefill first, in which each engine that is not proven yet stands at least once.

    A boot whose checks failed is not tried again, neither alone nor as a partner; a new boot is.

    Args:
        observed: the pool.
        engines: those that may be let in.
        cap: under which.
    """
    usable = [
        e
        for e in engines
        if e.boot is not None and (is_proven(e, observed, cap) or not observed.known.keeps_out(e.boot.nonces, cap))
    ]
    unproven = [e for e in usable if not is_proven(e, observed, cap)]
    if not unproven:
        return ()
    sides = [
        _in_turn([e for e in usable if e.type is kind], [e for e in unproven if e.type is kind])
        for kind in (RoleType.PREFILL, RoleType.DECODE)
    ]
    prefill, decode = sides
    if not prefill or not decode:
        return ()
    count = max(sum(e.type is kind for e in unproven) for kind in (RoleType.PREFILL, RoleType.DECODE))
    return tuple((prefill[i % len(prefill)], decode[i % len(decode)]) for i in range(count))


def _in_turn(usable: list[Engine], unproven: list[Engine]) -> list[Engine]:
    """Those to prove; where there are none, those that can be their partners, proven ones first."""
    return unproven or sorted(usable, key=lambda engine: not engine.is_open)
