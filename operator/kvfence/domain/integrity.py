"""The gate IntegrityEnforced: what protects KV on its way is on, as every running server reports it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.conditions import ConditionStatus, ConditionType
from kvfence.api.v1alpha1.pool import DefenceMode, IntegrityMode
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.domain.findings import Finding
from kvfence.domain.page_defences import attests, demanded, wrong_pages

if TYPE_CHECKING:
    from kvfence.domain.engines import Engine
    from kvfence.domain.observed import Observed


def integrity_enforced(observed: Observed) -> Finding:
    """Return the condition IntegrityEnforced, of the engines that answer."""
    running = [engine for engine in observed.engines if engine.facts is not None]
    judged = [integrity_of(engine, observed) for engine in running]
    for wrong in (ConditionStatus.FALSE, ConditionStatus.UNKNOWN):
        if found := next((finding for finding in judged if finding.status is wrong), None):
            return found
    if not running:
        return _finding(
            ConditionStatus.UNKNOWN, Reason.CHECKSUM_NOT_KNOWN, "No engine has said yet whether its KV checksum is on."
        )
    if stopped := wrong_pages(tuple(running)):
        return _finding(ConditionStatus.TRUE, Reason.WRONG_PAGES_FOUND, stopped)
    if observed.spec.integrity.kv_checksum is IntegrityMode.OBSERVE:
        on = sum(engine.facts is not None and engine.facts.kv_checksum is True for engine in running)
        return _finding(
            ConditionStatus.TRUE,
            Reason.CHECKSUM_OBSERVED,
            f"integrity.kvChecksum is Observe: {on} of {len(running)} engines report it as on, and none has to.",
        )
    if wanted := demanded(observed):
        return _finding(
            ConditionStatus.TRUE,
            Reason.DEFENCES_ENFORCED,
            f"All ranks of all running engines ({len(running)}) attest the KV checksum and {_listed(wanted)}.",
        )
    return _finding(
        ConditionStatus.TRUE,
        Reason.CHECKSUM_ENFORCED,
        f"All running engines report it as on: {len(running)} of {len(running)}.",
    )


def _listed(modes: dict[str, DefenceMode]) -> str:
    observed = [name for name, mode in modes.items() if mode is DefenceMode.OBSERVE]
    return ", ".join(modes) + (f" (of these only observed: {', '.join(observed)})" if observed else "")


def integrity_of(engine: Engine, observed: Observed) -> Finding:
    """Judge one engine that answers."""
    facts = engine.facts
    if facts is None:
        return _finding(ConditionStatus.UNKNOWN, Reason.CHECKSUM_NOT_KNOWN, f"Pod {engine.name} does not answer.")
    if facts.auto_truncates is not False:
        return _finding(
            ConditionStatus.FALSE if facts.auto_truncates else ConditionStatus.UNKNOWN,
            Reason.PROMPTS_TRUNCATED,
            f"Pod {engine.name} does not report --allow-auto-truncate as off. With it prefill and decode cut a prompt "
            "at different places, and decode reads what others left. Remove what turns it on in the image.",
        )
    if (wrong := attests(engine, observed)) is not None:
        return wrong
    if observed.spec.integrity.kv_checksum is IntegrityMode.OBSERVE or facts.kv_checksum is True:
        return _finding(ConditionStatus.TRUE, Reason.CHECKSUM_ENFORCED, f"Pod {engine.name} reports it as on.")
    if facts.kv_checksum is None:
        return _finding(
            ConditionStatus.UNKNOWN,
            Reason.CHECKSUM_NOT_KNOWN,
            f"Pod {engine.name} does not report --disaggregation-enable-kv-checksum, and is not admitted until it "
            "does. Use an image with a release of SGLang that has it.",
        )
    return _finding(
        ConditionStatus.FALSE,
        Reason.CHECKSUM_OFF,
        f"Pod {engine.name} runs without its KV checksum, although it was started with "
        "--disaggregation-enable-kv-checksum: nothing would notice pages of another request. Look for what turns it "
        "off in the image.",
    )


def _finding(status: ConditionStatus, reason: Reason, message: str) -> Finding:
    return Finding(ConditionType.INTEGRITY_ENFORCED, status, reason, message)
