"""Whose an object is: names, labels, selectors and the owner of everything that a pool is made of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Manifest: TypeAlias = dict[str, Any]
"""A Kubernetes object, as JSON has it."""

POOL_API_VERSION = "kvfence.io/v1alpha1"
POOL_KIND = "InferencePool"
MANAGER = "kvfence"

MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
NAME_LABEL = "app.kubernetes.io/name"
INSTANCE_LABEL = "app.kubernetes.io/instance"
POOL_LABEL = "kvfence.io/pool"
POOL_UID_LABEL = "kvfence.io/pool-uid"
ROLE_LABEL = "kvfence.io/role"
COMPONENT_LABEL = "kvfence.io/component"
REVISION_LABEL = "kvfence.io/revision"

ROUTER_ROLE = "router"
"""No role of a pool can have this name: the CRD refuses it."""


class Component(StrEnum):
    """What a pod is, in the label `kvfence.io/component`."""

    ENGINE = "engine"
    ROUTER = "router"


@dataclass(frozen=True, slots=True)
class PoolIdentity:
    """One InferencePool. A pool that is deleted and made again has the same name and another UID."""

    name: str
    namespace: str
    uid: str


def labels(
    pool: PoolIdentity, component: Component | None, *, role: str | None = None, revision: str | None = None
) -> dict[str, str]:
    """Return the labels of an object.

    Args:
        pool: whose it is.
        component: which part of the pool; `None` for what belongs to all of it.
        role: of an engine.
        revision: when the object belongs to one.
    """
    name = {NAME_LABEL: f"kvfence-{component}"} if component else {}
    return {
        MANAGED_BY_LABEL: MANAGER,
        INSTANCE_LABEL: pool.name,
        POOL_LABEL: pool.name,
        **name,
        **selector(pool, component, role=role, revision=revision),
    }


def selector(
    pool: PoolIdentity, component: Component | None, *, role: str | None = None, revision: str | None = None
) -> dict[str, str]:
    """Return the labels that pods are chosen by. The pool's UID is always among them: a name can come back."""
    chosen = {COMPONENT_LABEL: component, ROLE_LABEL: role, REVISION_LABEL: revision}
    given = {label: str(value) for label, value in chosen.items() if value is not None}
    return {POOL_UID_LABEL: pool.uid, **given}


def owner_reference(pool: PoolIdentity) -> Manifest:
    """Return the reference by which Kubernetes deletes an object with its pool, operator running or not."""
    return {
        "apiVersion": POOL_API_VERSION,
        "kind": POOL_KIND,
        "name": pool.name,
        "uid": pool.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def metadata(pool: PoolIdentity, name: str, labels: Mapping[str, str]) -> Manifest:
    """Return the metadata of a pool's object."""
    return {
        "name": name,
        "namespace": pool.namespace,
        "labels": dict(labels),
        "ownerReferences": [owner_reference(pool)],
    }


def workload_name(pool: PoolIdentity, role: str, revision: str) -> str:
    """Return the name of the Deployment of a role."""
    return f"{pool.name}-{role}-{revision}"


def router_name(pool: PoolIdentity, revision: str) -> str:
    """Return the name of the router's Deployment."""
    return workload_name(pool, ROUTER_ROLE, revision)


def router_config_name(pool: PoolIdentity, revision: str) -> str:
    """Return the name of the ConfigMap that router and front read."""
    return workload_name(pool, ROUTER_ROLE, revision)


def revision_name(pool: PoolIdentity, revision: str) -> str:
    """Return the name of the ControllerRevision."""
    return f"{pool.name}-{revision}"


def keys_name(pool: PoolIdentity) -> str:
    """Return the name of the ConfigMap with the operator's public keys."""
    return f"{pool.name}-kvfence-keys"


def service_name(pool: PoolIdentity) -> str:
    """Return the name of the Service that users reach."""
    return pool.name


def service_account_name(pool: PoolIdentity) -> str:
    """Return the name of the ServiceAccount of the pool's pods."""
    return f"{pool.name}-kvfence"


def engine_policy_name(pool: PoolIdentity) -> str:
    """Return the name of the engines' NetworkPolicy."""
    return f"{pool.name}-kvfence-engines"


def router_policy_name(pool: PoolIdentity) -> str:
    """Return the name of the routers' NetworkPolicy."""
    return f"{pool.name}-kvfence-router"
