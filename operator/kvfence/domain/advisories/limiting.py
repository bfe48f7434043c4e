"""Which running pools advisories may cut, so that one bad entry with an open range does not take a fleet down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvfence.domain.severity import Severity


@dataclass(frozen=True, slots=True)
class Running:
    """A pool that serves, or that an advisory cut."""

    name: str
    """Unique in the cluster, and the same at each look: `namespace/name`."""
    under: Severity | None
    """The gravest advisory that applies to what it runs, without those that are unknown or exempted; none for none."""
    cut: bool
    """Whether an advisory has cut it already."""


@dataclass(frozen=True, slots=True)
class CutLimit:
    """What whoever runs the cluster allows.

    Raises:
        ValueError: the number is negative.
    """

    severity: Severity
    """Advisories below it cut nothing that runs."""
    at_most: int
    """Pools that stand cut at once, over the whole cluster. 0 cuts none."""

    def __post_init__(self) -> None:
        """A negative number would be a slip."""
        if self.at_most < 0:
            raise ValueError(f"the number of pools that advisories cut at once is 0 at least, not {self.at_most}")


def limit_cuts(running: Iterable[Running], limit: CutLimit | None) -> tuple[str, ...]:
    """Return the pools that may be cut now, the gravest first, then by name.

    Pools that stand cut count, whether or not the advisory still applies: only their release makes room for others.

    Args:
        running: every pool of the cluster that serves or was cut by an advisory.
        limit: none where advisories cut nothing that runs.
    """
    if limit is None:
        return ()
    pools = tuple(running)
    cut = {pool.name for pool in pools if pool.cut}
    waiting: dict[str, Severity] = {}
    for pool in pools:
        if pool.under is None or not pool.under.at_least(limit.severity) or pool.name in cut:
            continue
        gravest = waiting.setdefault(pool.name, pool.under)
        waiting[pool.name] = pool.under if pool.under.at_least(gravest) else gravest
    order = sorted(waiting, key=lambda name: (waiting[name].order, name))
    return tuple(order[: max(0, limit.at_most - len(cut))])
