"""Works out the status of a pool. Pure; what did not change keeps its times, so that an unchanged status is equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.conditions import Condition
from kvfence.api.v1alpha1.status import ContextStatus, PoolStatus, RoleStatus
from kvfence.domain.capacity import Measured, Offered, TooSmall
from kvfence.domain.pools import pools_of
from kvfence.domain.roles_ready import answers
from kvfence.domain.summary import all_conditions

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from kvfence.domain.decisions import Decision
    from kvfence.domain.findings import Finding
    from kvfence.domain.observed import Observed, Role

MESSAGE_LIMIT = 4096
"""Characters; conditions take 32,768."""
_DIGEST_LIMIT = 128


def pool_status(observed: Observed, decision: Decision, generation: int, now: datetime) -> PoolStatus:
    """Return the status as it should be.

    Args:
        observed: the pool; its present status gives the times of what stays as it is.
        decision: what was decided about it.
        generation: `metadata.generation` of the spec that this was worked out from.
        now: for what changed.
    """
    findings = all_conditions(observed, decision)
    return PoolStatus(
        observed_generation=generation,
        conditions=conditions(observed.status, findings, generation, now),
        context_length=_context(observed, decision, now),
        roles=tuple(_role(observed, role) for role in observed.roles),
        current_revision=current_revision(observed, decision),
        update_revision=observed.revision,
    )


def current_revision(observed: Observed, decision: Decision) -> str | None:
    """Return the revision that serves, if one does."""
    return observed.revision if decision.serves else None


def conditions(
    status: PoolStatus, findings: Iterable[Finding], generation: int, now: datetime
) -> tuple[Condition, ...]:
    """Return findings as conditions; the time of the last transition moves with the status alone."""
    before = {condition.type: condition for condition in status.conditions}
    made = []
    for finding in findings:
        old = before.get(finding.condition)
        same = old is not None and old.status is finding.status
        made.append(
            Condition(
                type=finding.condition,
                status=finding.status,
                reason=finding.reason,
                message=finding.message[:MESSAGE_LIMIT],
                last_transition_time=old.last_transition_time if same and old is not None else now,
                observed_generation=generation,
            )
        )
    return tuple(made)


def _context(observed: Observed, decision: Decision, now: datetime) -> ContextStatus | None:
    match decision.capacity:
        case Offered(tokens, limit):
            advertised = tokens if decision.serves else 0
        case TooSmall(_, limit):
            advertised = _kept(observed) if decision.serves else 0
        case _ if decision.serves:
            return observed.status.context_length
        case _:
            return None
    made = ContextStatus(
        requested_tokens=observed.wanted.requested_tokens,
        advertised_tokens=advertised,
        limiting_role=limit.where.role if limit is not None else None,
        limiting_pod=limit.where.pod if limit is not None else None,
        kv_pool_tokens=limit.kv_pool_tokens if limit is not None else None,
        measurement_time=now,
    )
    old = observed.status.context_length
    if old is not None and old.model_copy(update={"measurement_time": now}) == made:
        return old
    return made


def _kept(observed: Observed) -> int:
    """What is on offer goes on although nothing new would be admitted."""
    return observed.status.context_length.advertised_tokens if observed.status.context_length is not None else 0


def _role(observed: Observed, role: Role) -> RoleStatus:
    engines = [engine for engine in observed.engines if engine.pod.role == role.name]
    versions = sorted({e.facts.version for e in engines if e.facts is not None and e.facts.version})
    images = sorted({_digest(e.pod.image_id) for e in engines if e.pod.image_id})
    sizes = [p.kv_pool_tokens for engine in engines for p in pools_of(engine) if isinstance(p, Measured)]
    return RoleStatus(
        name=role.name,
        replicas=len(engines),
        ready_replicas=sum(answers(engine) for engine in engines),
        admitted_replicas=sum(engine.is_open for engine in engines),
        engine_version=versions[0][:64] if versions else None,
        image_digest=images[0] if images else None,
        kv_pool_tokens=min(sizes, default=None),
    )


def _digest(image_id: str) -> str:
    """The kubelet writes `name@sha256:...` or, for an image without a registry, the digest alone."""
    return image_id.rpartition("@")[2][:_DIGEST_LIMIT]
