"""From what was seen to a report. The rules stand in tables: a new one is one function and one entry."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from kvfence.domain.diagnosis import exposure, known, limits, missing, pairs, switches, transfers
from kvfence.domain.diagnosis.doubts import doubts
from kvfence.domain.diagnosis.hits import Hit, findings
from kvfence.domain.diagnosis.report import Report
from kvfence.domain.diagnosis.scene import Scene, Server, scene_of
from kvfence.domain.diagnosis.seen import EngineSeen, Product, RouterSeen, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kvfence.domain.advisories import Advisory
    from kvfence.domain.diagnosis.seen import Seen

OF_ANY_ENGINE: tuple[Callable[[Server], Iterator[Hit]], ...] = (
    limits.start_failed,
    limits.ranks_differ,
    exposure.keys_shown,
)
"""Of one engine, whoever made it."""

OF_SGLANG: tuple[Callable[[Server], Iterator[Hit]], ...] = (
    limits.pool_not_as_wanted,
    pairs.too_old,
    pairs.auto_truncate,
    transfers.fake_backend,
    transfers.release_of_decode,
    transfers.hicache_on_prefill,
    transfers.decode_radix_cache,
    transfers.larger_state_space,
    switches.switches,
    switches.switches_for_tests,
)
"""Of one engine that is not known to be another's: its settings and variables are SGLang's."""

AMONG_OTHERS: tuple[Callable[[Scene, Server], Iterator[Hit]], ...] = (
    limits.context_above_pool,
    limits.decode_reserve,
    limits.limits_disagree,
)
"""Of one engine, with a cure that depends on those beside it."""

OF_ROUTER: tuple[Callable[[RouterSeen], Iterator[Hit]], ...] = (
    exposure.control_plane,
    exposure.server_info,
)

IN_FRONT: tuple[Callable[[Scene, RouterSeen], Iterator[Hit]], ...] = (exposure.waits_for_decode,)
"""Of a router, with the engines behind it."""

OF_PAIRS: tuple[Callable[[Scene], Iterator[Hit]], ...] = (
    pairs.versions_differ,
    pairs.roles_differ,
    pairs.checksum,
    pairs.tensor_parallel,
)
"""Of several engines that serve together."""


def diagnose(seen: Sequence[Seen], advisories: Sequence[Advisory]) -> Report:
    """Return a row for each engine, what is wrong, and what is missing to be sure.

    Args:
        seen: halves that were named as a pair serve together; others do if they say that they are halves of a pair and
            serve one model.
        advisories: that are known. How old they are is for who read them.
    """
    scene = scene_of(seen)
    hits = chain(_by_rules(scene), known.known_faults(scene, advisories))
    lacking = chain(
        missing.unreadable(seen),
        chain.from_iterable(missing.of_server(server) for server in scene.servers),
        missing.of_scene(scene),
        known.undecided(scene, advisories),
        missing.of_advisories(advisories),
    )
    rows = _rows(seen)
    return Report(rows, findings(hits), tuple(dict.fromkeys(lacking)), doubts(rows, scene))


def _by_rules(scene: Scene) -> Iterator[Hit]:
    for server in scene.servers:
        of_others = server.product not in (None, Product.SGLANG)
        for rule in OF_ANY_ENGINE if of_others else (*OF_ANY_ENGINE, *OF_SGLANG):
            yield from rule(server)
    for router in scene.routers:
        for of_router in OF_ROUTER:
            yield from of_router(router)
        for in_front in IN_FRONT:
            yield from in_front(scene, router)
    for part in scene.apart():
        for server in part.servers:
            for among_others in AMONG_OTHERS:
                yield from among_others(part, server)
        for of_pairs in OF_PAIRS:
            yield from of_pairs(part)


def _rows(seen: Sequence[Seen]) -> tuple[EngineSeen, ...]:
    """In the order in which they were seen. A source that tells nothing has a row of nulls, with the reason."""
    rows: list[EngineSeen] = []
    for one in seen:
        if isinstance(one, EngineSeen):
            rows.append(one)
        elif isinstance(one, Unreadable):
            rows.append(EngineSeen(one.source, notes=(one.why,)))
    return tuple(rows)
