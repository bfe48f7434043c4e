"""The gate EngineAllowed over a whole pool: what it declares first, then what each running engine says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.conditions import ConditionStatus, ConditionType
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.domain import advisory_gate
from kvfence.domain.findings import Finding
from kvfence.domain.versions import declared_version, running_version

if TYPE_CHECKING:
    from kvfence.domain.engines import Engine
    from kvfence.domain.observed import Observed


def engine_allowed(observed: Observed) -> Finding:
    """Return the condition EngineAllowed. What is declared counts until an engine runs, and refuses even then."""
    declared = declared_version(observed.declared, observed.floors)
    if declared.status is ConditionStatus.FALSE:
        return declared
    if refused := advisory_gate.of_declared(observed):
        return refused
    running = [version_of(engine, observed) for engine in observed.engines if engine.facts is not None]
    for wrong in (ConditionStatus.FALSE, ConditionStatus.UNKNOWN):
        if found := next((finding for finding in running if finding.status is wrong), None):
            return found
    if not running:
        return declared
    return replace(running[0], message=f"{running[0].message}{advisory_gate.not_judged(observed)}")


def version_of(engine: Engine, observed: Observed) -> Finding:
    """Judge the release that one engine runs: the floors first, then known faults of it."""
    if (other := _image_of_the_others(observed)) and engine.pod.image_id and engine.pod.image_id != other:
        return Finding(
            ConditionType.ENGINE_ALLOWED,
            ConditionStatus.FALSE,
            Reason.IMAGES_DIFFER,
            f"Pod {engine.name} runs another image than the pool's other engines, under the same name: its tag was "
            "moved. It is kept out. Name the image by digest, or delete the pods of the older one.",
        )
    version = engine.facts.version if engine.facts is not None else None
    found = running_version(version, engine.name, observed.declared, observed.floors)
    return found if not found.holds else advisory_gate.of_engine(engine, observed) or found


def _image_of_the_others(observed: Observed) -> str:
    """The image that engines which serve run, or else the first engine: prefill and decode have to be the same."""
    images = [engine.pod.image_id for engine in observed.engines if engine.pod.started and engine.pod.image_id]
    serving = [engine.pod.image_id for engine in observed.engines if engine.is_let_in and engine.pod.image_id]
    return next(iter(serving or images), "")
