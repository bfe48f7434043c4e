"""Writes a pool's status and its Events; nothing when nothing changed."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kvfence.api.v1alpha1.conditions import ConditionStatus, ConditionType
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.controller.pool_objects import status_of
from kvfence.domain.reporting import conditions
from kvfence.domain.summary import unreadable
from kvfence.kube.errors import KubernetesError, NotFound
from kvfence.kube.events import event
from kvfence.kube.kinds import POOL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvfence.api.v1alpha1.conditions import Condition
    from kvfence.api.v1alpha1.status import PoolStatus
    from kvfence.controller.pool_objects import PoolObjects
    from kvfence.controller.queue import Key
    from kvfence.kube.client import Kubernetes

SUMMARIES = frozenset({ConditionType.READY, ConditionType.STALLED, ConditionType.RECONCILING})
"""They repeat what another condition says, which has its own Event."""

log = logging.getLogger(__name__)


async def report(kubernetes: Kubernetes, pool: PoolObjects, status: PoolStatus) -> None:
    """Write the status if it is another one, and an Event for each condition that says something new."""
    if status == _own(pool.status):
        return
    identity = pool.identity
    reference = _reference(identity.namespace, identity.name, identity.uid)
    await _write(kubernetes, reference, status)
    await _tell(kubernetes, reference, pool.status.conditions, status.conditions)


async def report_unreadable(kubernetes: Kubernetes, key: Key, message: str) -> None:
    """Say that this operator cannot read the pool; what runs is left as it is."""
    pool = await kubernetes.get(POOL, *key)
    if pool is None:
        return
    before = status_of(pool)
    findings = unreadable(message)
    names = {str(finding.condition) for finding in findings}
    kept = tuple(condition for condition in before.conditions if condition.type not in names)
    generation = int(pool["metadata"].get("generation", 0))
    made = conditions(before, findings, generation, datetime.now(UTC).replace(microsecond=0))
    after = before.model_copy(update={"conditions": (*made, *kept)})
    if after != before:
        await _write(kubernetes, _reference(*key, pool["metadata"]["uid"]), after)


def _own(status: PoolStatus) -> PoolStatus:
    """Return the status without conditions that are not ours: whoever adds one is not to be argued with."""
    kept = tuple(condition for condition in status.conditions if condition.type in set(ConditionType))
    return status.model_copy(update={"conditions": kept})


async def _write(kubernetes: Kubernetes, reference: dict[str, Any], status: PoolStatus) -> None:
    written = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    try:
        await kubernetes.apply_status({**reference, "status": written})
    except NotFound:  # it was deleted meanwhile
        log.info("Pool %(namespace)s/%(name)s is gone; its status is not written", reference["metadata"])


async def _tell(
    kubernetes: Kubernetes, reference: dict[str, Any], before: Iterable[Condition], after: Iterable[Condition]
) -> None:
    """Write Events. An Event that cannot be written is no reason to do the rest again: the status has it all."""
    old = {condition.type: (condition.status, condition.reason) for condition in before}
    for condition in after:
        said = (condition.status, condition.reason)
        if condition.type in SUMMARIES or old.get(condition.type) == said or not _is_worth_telling(condition, old):
            continue
        warning = condition.status is ConditionStatus.FALSE and condition.reason not in _ON_THE_WAY
        made = event(reference, condition.reason, condition.message, warning=warning, now=datetime.now(UTC))
        try:
            await kubernetes.create(made)
        except KubernetesError as error:
            log.warning("Event %s cannot be written: %s", condition.reason, error)


_ON_THE_WAY = frozenset(
    {Reason.ENGINES_STARTING, Reason.NOT_ADMITTED, Reason.ADMITTING, Reason.OLD_REVISION_LEAVING, Reason.PLUGIN_CURRENT}
)
"""False, and nothing is wrong."""


def _is_worth_telling(condition: Condition, old: dict[str, Any]) -> bool:
    """A condition that is not known yet says nothing new when it appears, nor does one that is as it should be."""
    if condition.type in old:
        return condition.reason != Reason.NOT_ADMITTED or condition.status is not old[condition.type][0]
    quiet = {Reason.PLUGIN_CURRENT, Reason.ALL_DEFENCES_ENFORCED, Reason.NOT_ADMITTED}
    return condition.status is not ConditionStatus.UNKNOWN and condition.reason not in quiet


def _reference(namespace: str, name: str, uid: str) -> dict[str, Any]:
    metadata = {"namespace": namespace, "name": name, "uid": uid}
    return {"apiVersion": POOL.api_version, "kind": POOL.kind, "metadata": metadata}
