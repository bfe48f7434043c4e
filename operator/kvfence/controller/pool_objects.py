"""A pool and what is its own, as the API server has them at one moment."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from kvfence.api.v1alpha1.pool import PoolSpec
from kvfence.api.v1alpha1.status import PoolStatus
from kvfence.kube.kinds import CHILDREN, POD, POOL
from kvfence.render.identity import POOL_LABEL, POOL_UID_LABEL, PoolIdentity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.controller.queue import Key
    from kvfence.kube.client import Kubernetes

Object = dict[str, Any]
Place = tuple[str, str]
"""Kind and name."""


class PoolUnreadableError(ValueError):
    """The spec is not one that this operator can read; the message names the fields."""


@dataclass(frozen=True)
class PoolObjects:
    """One pool."""

    identity: PoolIdentity
    generation: int
    spec: PoolSpec
    status: PoolStatus
    owned: Mapping[Place, Object]
    """Objects of the kinds in `CHILDREN` whose controller the pool is."""
    strangers: frozenset[Place]
    """Objects with the pool's label that are not its own: of an earlier pool of this name, say."""
    pods: tuple[Object, ...]


async def read(kubernetes: Kubernetes, key: Key) -> PoolObjects | None:
    """Read a pool with all that belongs to it; none when it is gone, or being deleted.

    Everything is read anew each time, and nothing kept: what a watch missed cannot make a pool wrong.

    Raises:
        PoolUnreadableError: another version of kvfence wrote it.
        KubernetesError: the API server did not answer, or not so.
    """
    namespace, name = key
    labels = f"{POOL_LABEL}={name}"
    pool, (pods, *lists) = await asyncio.gather(
        kubernetes.get(POOL, namespace, name),
        asyncio.gather(*(kubernetes.list(kind, namespace, labels) for kind in (POD, *CHILDREN))),
    )
    if pool is None or pool["metadata"].get("deletionTimestamp"):
        return None
    uid = pool["metadata"]["uid"]
    children = [child for children in lists for child in children]
    return PoolObjects(
        identity=PoolIdentity(name, namespace, uid),
        generation=int(pool["metadata"].get("generation", 0)),
        spec=spec_of(pool),
        status=status_of(pool),
        owned={place(child): child for child in children if controller_uid(child) == uid},
        strangers=frozenset(place(child) for child in children if controller_uid(child) != uid),
        pods=tuple(pod for pod in pods if (pod["metadata"].get("labels") or {}).get(POOL_UID_LABEL) == uid),
    )


def spec_of(pool: Object) -> PoolSpec:
    """Read the spec of an InferencePool.

    Raises:
        PoolUnreadableError: see there.
    """
    try:
        return PoolSpec.model_validate(pool.get("spec"))
    except ValidationError as error:
        fields = [".".join(("spec", *map(str, one["loc"]))) + f" ({one['msg']})" for one in error.errors()[:3]]
        raise PoolUnreadableError(
            f"This operator cannot read {', '.join(fields)}. Bring the CRD and the operator to the same version."
        ) from error


def status_of(pool: Object) -> PoolStatus:
    """Read the status; what cannot be read is as if it were not there, and is written anew."""
    try:
        return PoolStatus.model_validate(pool.get("status") or {})
    except ValidationError:
        return PoolStatus()


def key_of(pool: Object) -> Key:
    """Return what the work queue calls a pool."""
    return pool["metadata"]["namespace"], pool["metadata"]["name"]


def place(obj: Object) -> Place:
    """Return where an object is within its namespace."""
    return obj["kind"], obj["metadata"]["name"]


def controller_uid(obj: Object) -> str | None:
    """Return the UID of the object that controls this one."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return str(owner.get("uid"))
    return None
