"""Which pools stand cut for an advisory: few at once, or one wrong entry would take down a cluster."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.conditions import ConditionType
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.domain.advisories import CutLimit, Running, limit_cuts
from kvfence.domain.advisory_gate import gravest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kvfence.api.v1alpha1.conditions import Condition
    from kvfence.controller.pool_objects import Object
    from kvfence.controller.queue import Key
    from kvfence.domain.observed import Observed


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
            key = (str(pool["metadata"]["namespace"]), str(pool["metadata"]["name"]))
            if self.limit is not None and _says_cut((pool.get("status") or {}).get("conditions") or ()):
                self._pools[key] = Running(_name(key), self.limit.severity, cut=True)

    def judge(self, key: Key, observed: Observed) -> bool:
        """Say whether this pool is cut now.

        A pool stands cut until no such advisory applies to any of its engines. While one of them does not answer, that
        is not known, and it stays: else its place would be free for the next pool.
        """
        worst = gravest(observed)
        under = worst.severity if worst is not None else None
        before = self._pools.get(key)
        was_cut = before.cut if before is not None else _told(observed.status.conditions)
        all_told = bool(observed.engines) and all(engine.facts is not None for engine in observed.engines)
        if self.limit is None or not (observed.serving or was_cut):
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
        there = {(str(pool["metadata"]["namespace"]), str(pool["metadata"]["name"])) for pool in pools}
        for key in self._pools.keys() - there:
            self.forget(key)

    def forget(self, key: Key) -> None:
        """Count a pool no more: it is gone, or serves nobody for another reason."""
        self._pools.pop(key, None)


def _name(key: Key) -> str:
    return "/".join(key)


def _told(conditions: Iterable[Condition]) -> bool:
    return any((one.type, one.reason) == (ConditionType.TRAFFIC_ADMITTED, Reason.CUT_BY_ADVISORY) for one in conditions)


def _says_cut(conditions: Iterable[Mapping[str, object]]) -> bool:
    return any(
        (one.get("type"), one.get("reason")) == (ConditionType.TRAFFIC_ADMITTED, Reason.CUT_BY_ADVISORY)
        for one in conditions
    )
