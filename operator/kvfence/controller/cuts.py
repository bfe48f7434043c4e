"""Which pools stand cut for an advisory: few at once, or one wrong entry would take down a cluster."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.conditions import ConditionType
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.controller.pool_objects import key_of
from kvfence.domain.advisories import CutLimit, Running, limit_cuts
from kvfence.domain.advisory_gate import gravest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvfence.controller.pool_objects import Object
    from kvfence.controller.queue import Key
    from kvfence.domain.observed import Observed

_CUT = (ConditionType.TRAFFIC_ADMITTED, Reason.CUT_BY_ADVISORY)
"""Type and reason of the condition that says so."""


@dataclass
class Cuts:
    """Counts the pools that are cut, and says which one may be cut next. Of one event loop.

    Attributes:
        limit: from which severity, and how many at once; `None` where advisories cut nothing that serves.
    """

    limit: CutLimit | None
    _pools: dict[Key, Running] = field(default_factory=dict)

    def begin(self, pools: Iterable[Object]) -> None:
        """Count the pools that an operator before this one has cut, before any is looked at."""
        for pool in pools:
            conditions = (pool.get("status") or {}).get("conditions") or ()
            if self.limit is not None and _CUT in [(one.get("type"), one.get("reason")) for one in conditions]:
                key = key_of(pool)
                self._pools[key] = Running(_name(key), self.limit.severity, cut=True)

    def judge(self, key: Key, observed: Observed) -> bool:
        """Say whether this pool is cut now.

        A pool stands cut until no such advisory applies to any of its engines. While one of them does not answer, that
        is not known, and it stays: else its place would be free for the next pool.
        """
        if self.limit is None:
            return False
        worst = gravest(observed)
        under = worst.severity if worst is not None else None
        before = self._pools.get(key)
        was_cut = (
            before.cut if before is not None else _CUT in [(one.type, one.reason) for one in observed.status.conditions]
        )
        all_told = bool(observed.engines) and all(engine.facts is not None for engine in observed.engines)
        if not (observed.serving or was_cut):
            self.forget(key)
            return False
        if was_cut and (not all_told or (under is not None and under.at_least(self.limit.severity))):
            self._pools[key] = Running(_name(key), under, cut=True)
            return True
        self._pools[key] = Running(_name(key), under, cut=False)
        if _name(key) not in limit_cuts(self._pools.values(), self.limit):
            return False
        self._pools[key] = replace(self._pools[key], cut=True)
        return True

    def keep(self, pools: Iterable[Object]) -> None:
        """Forget the pools that are not among these, all that there are: one may be gone before it was looked at."""
        for key in self._pools.keys() - {key_of(pool) for pool in pools}:
            self.forget(key)

    def forget(self, key: Key) -> None:
        """Count a pool no more: it is gone, or serves nobody for another reason."""
        self._pools.pop(key, None)


def _name(key: Key) -> str:
    return "/".join(key)
