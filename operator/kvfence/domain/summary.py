"""The conditions that sum up: Secured, PluginOutdated, Ready, Stalled and Reconciling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.conditions import ConditionStatus, ConditionType
from kvfence.api.v1alpha1.pool import DefenceMode, IntegrityMode
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.domain import advisory_gate
from kvfence.domain.findings import Finding
from kvfence.domain.page_defences import modes_of
from kvfence.domain.plugin import has_page_defences, is_older
from kvfence.domain.traffic_admitted import traffic_admitted

if TYPE_CHECKING:
    from kvfence.domain.decisions import Decision
    from kvfence.domain.observed import Observed

NEEDS_A_PERSON = frozenset(
    {
        *(Reason.IMAGE_NOT_PULLED, Reason.CONTAINER_NOT_CREATED, Reason.ENGINE_OUT_OF_MEMORY, Reason.ENGINE_FAILED),
        *(Reason.CHECK_FAILED, Reason.CHECKSUM_OFF, Reason.PROMPTS_TRUNCATED),
        *(Reason.PAGE_DEFENCE_OFF, Reason.PAGES_NOT_TAGGED),
        *(Reason.VERSION_TOO_OLD, Reason.DEVELOPMENT_VERSION, Reason.VERSION_UNREADABLE, Reason.CHECKSUM_NOT_RELIABLE),
        *(
            Reason.VERSION_NOT_AS_DECLARED,
            Reason.IMAGES_DIFFER,
            Reason.PAGE_SIZES_DIFFER,
            Reason.ENGINE_LIMIT_ABOVE_POOL,
        ),
        *(Reason.REQUESTED_CONTEXT_DOES_NOT_FIT, Reason.MINIMUM_CONTEXT_DOES_NOT_FIT, Reason.NO_CONTEXT_FITS),
        *(Reason.DOOR_TAINTED, Reason.NAME_TAKEN, Reason.OBJECT_REFUSED),
        *(Reason.ADVISORY_APPLIES, Reason.CUT_BY_ADVISORY),
    }
)
"""Reasons after which nothing goes on by itself. What is tried again is not among them."""


def all_conditions(observed: Observed, decision: Decision) -> tuple[Finding, ...]:
    """Return every condition of a pool, the summing up first."""
    admitted = traffic_admitted(observed, decision)
    gates = (*decision.findings, admitted)
    waiting = [*decision.in_the_way, *(() if admitted.holds else (admitted,))]
    stopped = [finding for finding in waiting if finding.reason in NEEDS_A_PERSON]
    # A failed check shuts doors, and says more than that they are shut.
    stuck = min(stopped, key=lambda finding: finding.reason is not Reason.CHECK_FAILED, default=None)
    if observed.refused:
        stuck = _object_refused(observed)
    if observed.taken:
        stuck = _name_taken(observed)
    first = stuck or (waiting[0] if waiting else None)
    return (_ready(first), *gates, secured(observed), plugin_outdated(observed), _stalled(stuck), _reconciling(first))


def unreadable(message: str) -> tuple[Finding, Finding]:
    """Return the conditions of a pool whose spec this operator cannot read; the others stay as they are.

    Args:
        message: which fields, and what to do.
    """
    reason = Reason.POOL_UNREADABLE
    return (
        Finding(ConditionType.READY, ConditionStatus.UNKNOWN, reason, message),
        Finding(ConditionType.STALLED, ConditionStatus.TRUE, reason, message),
    )


def secured(observed: Observed) -> Finding:
    """Say whether a setting of the pool weakens what kvfence promises."""
    if observed.spec.integrity.kv_checksum is IntegrityMode.OBSERVE:
        return Finding(
            ConditionType.SECURED,
            ConditionStatus.FALSE,
            Reason.DEFENCES_WEAKENED,
            "integrity.kvChecksum is Observe, so that an engine without KV checksum is let in. Set it to Enforce.",
        )
    if weak := [name for name, mode in modes_of(observed.spec).items() if mode is not DefenceMode.ENFORCE]:
        named = ", ".join(f"integrity.{name}" for name in weak)
        return Finding(
            ConditionType.SECURED,
            ConditionStatus.FALSE,
            Reason.DEFENCES_WEAKENED,
            f"Not enforced: {named}. What it would end, users may get. Set it to Enforce, or leave the field out.",
        )
    if not has_page_defences(observed.plugin_version or observed.newest_plugin_version):
        return Finding(
            ConditionType.SECURED,
            ConditionStatus.FALSE,
            Reason.PLUGIN_OUTDATED,
            f"Revision {observed.revision} runs kvfence-engine {observed.plugin_version}, which has no page tagging, "
            "page scrubbing or coverage. It serves on as it is: set engine.sglang.pluginVersion to "
            f"{observed.newest_plugin_version} when a restart of its engines suits you.",
        )
    if weakened := advisory_gate.tolerated(observed) or advisory_gate.incomplete(observed):
        return weakened
    return Finding(
        ConditionType.SECURED,
        ConditionStatus.TRUE,
        Reason.ALL_DEFENCES_ENFORCED,
        "Nothing in the pool's settings weakens a defence.",
    )


def plugin_outdated(observed: Observed) -> Finding:
    """Say whether the revision runs an older kvfence-engine than the operator brings."""
    version, newest = observed.plugin_version, observed.newest_plugin_version
    is_pinned = observed.spec.engine.sglang.plugin_version == version
    if not observed.runs or is_pinned or not is_older(version, newest):
        return Finding(
            ConditionType.PLUGIN_OUTDATED,
            ConditionStatus.FALSE,
            Reason.PLUGIN_CURRENT,
            f"kvfence-engine {version or newest} is injected.",
        )
    return Finding(
        ConditionType.PLUGIN_OUTDATED,
        ConditionStatus.TRUE,
        Reason.PLUGIN_OLDER,
        f"Revision {observed.revision} runs kvfence-engine {version}, and the operator brings {newest}. Engines are "
        f"not restarted for that: set engine.sglang.pluginVersion to {newest} when it suits you.",
    )


def _object_refused(observed: Observed) -> Finding:
    more = f" And {len(observed.refused) - 1} more." if len(observed.refused) > 1 else ""
    return Finding(
        ConditionType.STALLED,
        ConditionStatus.TRUE,
        Reason.OBJECT_REFUSED,
        f"The API server did not take an object of the pool: {observed.refused[0]}.{more} Correct what the pool says, "
        "or what forbids it; it is tried again.",
    )


def _name_taken(observed: Observed) -> Finding:
    return Finding(
        ConditionType.STALLED,
        ConditionStatus.TRUE,
        Reason.NAME_TAKEN,
        f"Not this pool's, and in the way: {', '.join(observed.taken[:3])}. If an earlier pool of this name is being "
        "deleted, this goes on by itself; else rename the pool, or remove the object.",
    )


def _ready(first: Finding | None) -> Finding:
    if first is None:
        return Finding(
            ConditionType.READY, ConditionStatus.TRUE, Reason.SERVING, "The pool serves, as it was asked for."
        )
    return Finding(ConditionType.READY, ConditionStatus.FALSE, first.reason, first.message)


def _stalled(stuck: Finding | None) -> Finding:
    if stuck is None:
        return Finding(ConditionType.STALLED, ConditionStatus.FALSE, Reason.PROGRESSING, "Nothing waits for a person.")
    return Finding(ConditionType.STALLED, ConditionStatus.TRUE, stuck.reason, stuck.message)


def _reconciling(first: Finding | None) -> Finding:
    if first is None:
        return Finding(
            ConditionType.RECONCILING, ConditionStatus.FALSE, Reason.AS_DECLARED, "All is as it was asked for."
        )
    return Finding(ConditionType.RECONCILING, ConditionStatus.TRUE, first.reason, first.message)
