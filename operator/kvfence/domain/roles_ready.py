"""The gate RolesReady: every engine that is wanted has started and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.conditions import ConditionStatus, ConditionType
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.domain.context_fits import NAMED
from kvfence.domain.engines import DoorState
from kvfence.domain.findings import Finding
from kvfence.domain.pods import quoted

if TYPE_CHECKING:
    from kvfence.domain.engines import Engine
    from kvfence.domain.observed import Observed

NOT_ASKED = "it was not asked yet"

_MAY_PASS = frozenset({Reason.ENGINES_STARTING, Reason.POD_NOT_SCHEDULED})
"""Reasons that come last: what needs a person is told first."""


def roles_ready(observed: Observed, *, allowed: bool) -> Finding:
    """Return the condition RolesReady.

    Args:
        observed: the pool.
        allowed: whether the engine may be started at all.
    """
    if not allowed and not observed.runs:
        return _finding(
            ConditionStatus.FALSE, Reason.NOT_STARTED, "No engine is started: condition EngineAllowed says why."
        )
    ready = {role.name: _ready(observed, role.name) for role in observed.roles}
    enough = all(ready[role.name] >= role.replicas for role in observed.roles)
    if enough and not any(engine.is_shut for engine in observed.engines):
        return _finding(
            ConditionStatus.TRUE, Reason.ENGINES_STARTED, f"All {sum(ready.values())} engines have started."
        )
    if observed.leaving and not observed.engines:
        return _finding(
            ConditionStatus.FALSE,
            Reason.OLD_REVISION_LEAVING,
            f"{observed.leaving} engines of the revision before finish their requests; the new ones start then.",
        )
    counts = ", ".join(f"{ready[role.name]} of {role.replicas} of role {role.name}" for role in observed.roles)
    return _not_ready(observed, f"Started: {counts}.")


def _ready(observed: Observed, role: str) -> int:
    return sum(engine.pod.role == role and answers(engine) and not engine.is_shut for engine in observed.engines)


def answers(engine: Engine) -> bool:
    """Whether an engine has started, and its door and its server said what is asked of them."""
    return engine.pod.started and engine.boot is not None and engine.facts is not None


def _tainted(engine: Engine) -> str:
    blown = engine.boot.blown if engine.boot is not None else None
    if blown is None:
        return f"A defence of pod {engine.name} tripped, and its door is shut."
    return f"A defence of pod {engine.name} tripped ({blown.finding}: {blown.kind}, {blown.source}); its door is shut."


def _not_ready(observed: Observed, counts: str) -> Finding:
    waited_for = [engine for engine in observed.engines if not answers(engine)]
    if tainted := [engine for engine in observed.engines if engine.boot and engine.boot.door is DoorState.TAINTED]:
        words = _several([_tainted(engine) for engine in tainted])
        return _finding(
            ConditionStatus.FALSE,
            Reason.DOOR_TAINTED,
            f"{counts} {words} Condition IsolationVerified or its log says what was seen; deleting the pod starts "
            "another one.",
        )
    troubles = [engine.pod.trouble for engine in waited_for if engine.pod.trouble is not None]
    if troubles:
        first = min(troubles, key=lambda trouble: trouble.reason in _MAY_PASS)
        words = _several([trouble.words for trouble in (first, *troubles)])
        return _finding(ConditionStatus.FALSE, first.reason, f"{counts} {words}")
    if observed.not_created:
        words = _several([f"Kubernetes makes no pod: {quoted(said)}." for said in observed.not_created])
        return _finding(ConditionStatus.FALSE, Reason.PODS_NOT_CREATED, f"{counts} {words}")
    silent = [engine for engine in waited_for if engine.pod.started]
    if silent:
        words = _several([f"Pod {engine.name} has started, but {engine.silent or NOT_ASKED}." for engine in silent])
        return _finding(
            ConditionStatus.FALSE,
            Reason.ENGINE_NOT_ANSWERING,
            f"{counts} {words} It is asked again; if it stays so, look at its log and at NetworkPolicies between the "
            "operator and the pool.",
        )
    leaving = [f"Pod {engine.name} ends, and lets nobody in any more." for engine in observed.engines if engine.is_shut]
    return _finding(ConditionStatus.FALSE, Reason.ENGINES_STARTING, " ".join([counts, _several(leaving)]).rstrip())


def _several(sentences: list[str]) -> str:
    unique = list(dict.fromkeys(sentences))
    more = f" And {len(unique) - NAMED} more." if len(unique) > NAMED else ""
    return " ".join(unique[:NAMED]) + more


def _finding(status: ConditionStatus, reason: Reason, message: str) -> Finding:
    return Finding(ConditionType.ROLES_READY, status, reason, message)
