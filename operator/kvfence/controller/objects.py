"""Brings a pool's objects to what they should be: applies what differs, removes what is too much. Decides nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.controller.gathering import bracketed
from kvfence.controller.pool_objects import controller_uid, place
from kvfence.domain.reporting import current_revision
from kvfence.kube.drift import is_applied, with_digest
from kvfence.kube.errors import Contested, Forbidden, Invalid
from kvfence.kube.kinds import POD, kind_of
from kvfence.render import engine_workload, router_workload
from kvfence.render.controller_revision import controller_revision
from kvfence.render.engine_command import HTTP_PORT
from kvfence.render.front import models_json
from kvfence.render.identity import COMPONENT_LABEL, REVISION_LABEL, Component, router_name
from kvfence.render.keys import keys_config_map
from kvfence.render.network_policy import network_policies
from kvfence.render.router_config import POKE_ANNOTATION, Worker, config_digest, config_map
from kvfence.render.service import service
from kvfence.render.service_account import service_account

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.controller.gathering import Gathered
    from kvfence.controller.pool_objects import Object, Place, PoolObjects
    from kvfence.domain.decisions import Decision
    from kvfence.domain.engines import Engine
    from kvfence.kube.client import Kubernetes
    from kvfence.render.settings import Installation


@dataclass(frozen=True)
class Wanted:
    """What is to be there."""

    objects: tuple[Object, ...]
    """In the order in which they are applied."""
    kept: frozenset[Place]
    """What else stays."""
    router_config: str | None
    """Digest of what router and front are to read; none when there is no router."""


def wanted(
    pool: PoolObjects,
    gathered: Gathered,
    decision: Decision,
    installation: Installation,
    public_keys: Mapping[str, bytes],
) -> Wanted:
    """Return every object that the pool should have now. Pure."""
    identity, observed = pool.identity, gathered.observed
    objects: list[Object] = [
        service_account(identity),
        keys_config_map(identity, public_keys),
        *network_policies(identity, pool.spec, installation),
    ]
    digest = None
    if decision.runs:
        objects.append(controller_revision(identity, observed.revision, gathered.number, gathered.frozen))
        # A gate that is raised later leaves no cap to be offered, and what is listed serves on under the one in force.
        offered = decision.cap if decision.cap is not None else observed.applied_tokens
        models = models_json(gathered.served_name, offered if decision.listed else None)
        workers = tuple(_worker(engine) for engine in decision.listed)
        config = config_map(identity, observed.revision, workers, models)
        digest = config_digest(config)
        objects.append(config)
        for role in observed.roles:
            template = gathered.frozen.templates[role.name]
            made = engine_workload.deployment(identity, role.name, observed.revision, template, role.replicas)
            objects.append(made)
        objects.append(router_workload.deployment(identity, pool.spec, observed.revision, installation))
    objects.append(service(identity, current_revision(observed, decision)))
    kept = frozenset() if gathered.is_target else _of_the_spec_before(pool, observed.revision)
    return Wanted(tuple(with_digest(one) for one in objects if place(one) not in kept), kept, digest)


def _of_the_spec_before(pool: PoolObjects, revision: str) -> frozenset[Place]:
    """Return what a spec that may not run does not change: what is made of the spec, and not of the revision."""
    router = ("Deployment", router_name(pool.identity, revision))
    return frozenset(where for where in pool.owned if where == router or where[0] == "NetworkPolicy")


@dataclass(frozen=True)
class NotDone:
    """What could not be brought about."""

    taken: tuple[str, ...] = ()
    """What stands under a name that is needed and is not the pool's own, as `Kind name`; it is left alone."""
    refused: tuple[str, ...] = ()
    """What the API server said when it did not take an object."""


async def bring_about(kubernetes: Kubernetes, pool: PoolObjects, want: Wanted, revision: str) -> NotDone:
    """Apply and delete as little as there is to. What the API server refuses of one object holds up no other."""
    taken: list[str] = []
    refused: list[str] = []
    for one in want.objects:
        live = pool.owned.get(place(one))
        if live is None and (place(one) in pool.strangers or await _exists(kubernetes, pool, one)):
            taken.append(" ".join(place(one)))
        elif live is None or not is_applied(one, live):
            try:
                await kubernetes.apply(one)
            except (Contested, Forbidden, Invalid) as error:
                refused.append(str(error))
    names = {place(one) for one in want.objects} | want.kept
    for where, live in pool.owned.items():
        if where not in names and not live["metadata"].get("deletionTimestamp"):
            meta = live["metadata"]
            await kubernetes.delete(kind_of(live), meta["namespace"], meta["name"], meta["uid"])
    if want.router_config is not None:
        await _poke_routers(kubernetes, pool, revision, want.router_config)
    return NotDone(tuple(taken), tuple(refused))


async def _exists(kubernetes: Kubernetes, pool: PoolObjects, obj: Object) -> bool:
    """Whether someone has the name already: an apply would take their object over. One of ours may lack its label."""
    live = await kubernetes.get(kind_of(obj), pool.identity.namespace, obj["metadata"]["name"])
    return live is not None and controller_uid(live) != pool.identity.uid


async def _poke_routers(kubernetes: Kubernetes, pool: PoolObjects, revision: str, digest: str) -> None:
    """Change an annotation of the router's pods: the kubelet then brings the ConfigMap in a second, not a minute."""
    for pod in pool.pods:
        meta = pod["metadata"]
        labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
        if (labels.get(COMPONENT_LABEL), labels.get(REVISION_LABEL)) != (Component.ROUTER, revision):
            continue
        if annotations.get(POKE_ANNOTATION) != digest and not meta.get("deletionTimestamp"):
            await kubernetes.annotate(POD, meta["namespace"], meta["name"], {POKE_ANNOTATION: digest})


def _worker(engine: Engine) -> Worker:
    prefill = engine.type is RoleType.PREFILL
    return Worker(
        id=engine.pod.uid,
        url=worker_url(engine),
        prefill=prefill,
        bootstrap_port=engine.bootstrap_port if prefill else None,
    )


def worker_url(engine: Engine) -> str:
    """Return where the router reaches an engine: the pod itself, so that a resend can meet no other."""
    return f"http://{bracketed(engine.pod.ip or '')}:{HTTP_PORT}"
