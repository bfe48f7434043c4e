"""The condition TrafficAdmitted: whether users' requests are let in, and what keeps them out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.conditions import ConditionStatus, ConditionType
from kvfence.api.v1alpha1.pool import RoleType
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.domain.advisory_gate import cut_words
from kvfence.domain.findings import Finding

if TYPE_CHECKING:
    from kvfence.domain.decisions import Decision
    from kvfence.domain.observed import Observed


def traffic_admitted(observed: Observed, decision: Decision) -> Finding:
    """Return the condition TrafficAdmitted."""
    if observed.is_cut:
        return _finding(ConditionStatus.FALSE, Reason.CUT_BY_ADVISORY, cut_words(observed))
    refusal = next(iter(_refusals(observed)), "")
    if not decision.serves and refusal:
        return _finding(ConditionStatus.FALSE, Reason.ADMISSION_REFUSED, refusal)
    if not decision.serves:
        return _not_yet(observed, decision)
    more = f" {refusal}" if refusal else ""
    opened = {kind: _opened(decision, kind) for kind in (RoleType.PREFILL, RoleType.DECODE)}
    if closed := [kind for kind, count in opened.items() if not count]:
        return _finding(
            ConditionStatus.FALSE,
            Reason.NOT_ADMITTED,
            f"No engine of type {' or '.join(closed)} is open, so that no request can be answered. Conditions "
            f"RolesReady and IsolationVerified say what they wait for.{more}",
        )
    if not any(router.ready for router in observed.routers):
        words = _router_words(observed) or "No router is ready yet: it needs an engine of each type that it can reach."
        return _finding(ConditionStatus.FALSE, Reason.ROUTER_NOT_READY, words)
    counts = f"{opened[RoleType.PREFILL]} prefill and {opened[RoleType.DECODE]} decode engines"
    return _finding(ConditionStatus.TRUE, Reason.ADMITTED, f"Users' requests are let in, to {counts}.{more}")


def _not_yet(observed: Observed, decision: Decision) -> Finding:
    waiting = next(iter(decision.in_the_way), None)
    if waiting is not None and (not decision.listed or waiting.status is ConditionStatus.FALSE):
        return _finding(
            ConditionStatus.FALSE,
            Reason.NOT_ADMITTED,
            f"Nobody is let in, since {waiting.condition} does not hold ({waiting.reason}).",
        )
    if decision.listed and not any(router.ready for router in observed.routers):
        if words := _router_words(observed):
            return _finding(ConditionStatus.FALSE, Reason.ROUTER_NOT_READY, words)
        return _finding(
            ConditionStatus.FALSE, Reason.ADMITTING, "The engines are proven. The router takes them up next."
        )
    return _finding(ConditionStatus.FALSE, Reason.ADMITTING, "All is proven but the front; nobody is let in yet.")


def _router_words(observed: Observed) -> str:
    return next((router.trouble.words for router in observed.routers if router.trouble is not None), "")


def _refusals(observed: Observed) -> list[str]:
    return [
        f"The door of pod {engine.name} did not take its admission: {observed.known.refusals[engine.boot.nonces]}"
        for engine in observed.engines
        if engine.boot is not None and engine.boot.nonces in observed.known.refusals
    ]


def _opened(decision: Decision, kind: RoleType) -> int:
    return sum(engine.type is kind for engine in decision.listed)


def _finding(status: ConditionStatus, reason: Reason, message: str) -> Finding:
    return Finding(ConditionType.TRAFFIC_ADMITTED, status, reason, message)
