"""The gate EngineAllowed over a whole pool: what it declares first, then what each running engine says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.conditions import ConditionStatus
from kvfence.domain.versions import declared_version, running_version

if TYPE_CHECKING:
    from kvfence.domain.engines import Engine
    from kvfence.domain.findings import Finding
    from kvfence.domain.observed import Observed


def engine_allowed(observed: Observed) -> Finding:
    """Return the condition EngineAllowed. What is declared counts until an engine runs, and refuses even then."""
    declared = declared_version(observed.declared, observed.floors)
    if declared.status is ConditionStatus.FALSE:
        return declared
    running = [version_of(engine, observed) for engine in observed.engines if engine.facts is not None]
    for wrong in (ConditionStatus.FALSE, ConditionStatus.UNKNOWN):
        if found := next((finding for finding in running if finding.status is wrong), None):
            return found
    return running[0] if running else declared


def version_of(engine: Engine, observed: Observed) -> Finding:
    """Judge the release that one engine runs."""
    version = engine.facts.version if engine.facts is not None else None
    return running_version(version, engine.name, observed.declared, observed.floors)
