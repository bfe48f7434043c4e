"""Gathers what is to be known of a pool before anything is decided: its objects, and what its engines say."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kvfence.api.v1alpha1.conditions import ConditionStatus
from kvfence.api.v1alpha1.pool import RoleType
from kvfence.controller.memory import Fronts
from kvfence.controller.pool_objects import PoolUnreadableError
from kvfence.domain.advisory_gate import refuses, running
from kvfence.domain.engines import Boot, DoorState, Engine, Facts, Rank
from kvfence.domain.observed import Observed, Role
from kvfence.domain.plugin import has_page_defences
from kvfence.domain.pods import PodFacts, pod_facts
from kvfence.domain.revisions import revision_hash, start_tokens
from kvfence.domain.templates import flag, variables
from kvfence.domain.versions import Declared, Floors, declared_version
from kvfence.engine import attestation
from kvfence.engine.server_info import ServerFacts, fetch
from kvfence.engine.web import Unanswered
from kvfence.render.controller_revision import Frozen, frozen_of
from kvfence.render.engine_command import HTTP_PORT
from kvfence.render.engine_pod import pod_template
from kvfence.render.identity import (
    COMPONENT_LABEL,
    REVISION_LABEL,
    ROLE_LABEL,
    Component,
    revision_name,
    service_name,
    workload_name,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from kvfence.api.v1alpha1.pool import PoolSpec
    from kvfence.controller.memory import PoolMemory
    from kvfence.controller.pool_objects import Object, PoolObjects
    from kvfence.controller.watchlists import Watchlists
    from kvfence.domain.advisory_gate import Watchlist
    from kvfence.engine.door import DoorClient, DoorStatus
    from kvfence.engine.web import Web
    from kvfence.render.identity import PoolIdentity
    from kvfence.render.settings import Installation

_TYPES = {"prefill": RoleType.PREFILL, "decode": RoleType.DECODE}


@dataclass(frozen=True)
class _Revision:
    name: str
    frozen: Frozen
    number: int
    is_target: bool = True


@dataclass(frozen=True)
class Gathered:
    """A pool seen as the revision that is worked on."""

    observed: Observed
    frozen: Frozen
    """Of the revision: as it is stored, or as it will be."""
    number: int
    """Of the revision's ControllerRevision."""
    served_name: str
    is_target: bool
    """Whether the spec asks for it and may run; else it is the one that goes on because the spec is refused."""


@dataclass(frozen=True)
class Gatherer:
    """Asks engines.

    Attributes:
        doors: for the launchers' port.
        web: for the servers' own port.
        installation: what the operator was installed with.
        floors: of the cluster.
        watchlists: the advisories that count.
    """

    doors: DoorClient
    web: Web
    installation: Installation
    floors: Floors
    watchlists: Watchlists

    async def gather(self, pool: PoolObjects, memory: PoolMemory) -> Gathered:
        """Return what is known of a pool. An engine that does not answer is one that says nothing."""
        watchlist = self.watchlists.current()
        of_spec = memory.judged_declared(watchlist, pool.spec)
        is_below = _is_below(pool.spec, self.floors)
        may_start = not (is_below or refuses(pool.spec, of_spec, watchlist))
        which = _revision(pool, self.installation, may_start=may_start, may_go_on=not is_below)
        revision, frozen = which.name, which.frozen
        mine, others = _pods_of(pool, revision, frozen.templates)
        engines = await asyncio.gather(*(self._engine(one, frozen, pool.identity, memory) for one in mine))
        memory.keep(
            {engine.boot.nonces: engine.pod.uid for engine in engines if engine.boot is not None},
            {engine.pod.uid for engine in engines if engine.boot is None},
        )
        observed = Observed(
            spec=pool.spec,
            status=pool.status,
            revision=revision,
            roles=_roles(pool, which),
            engines=tuple(_judged(one, watchlist, memory) for one in sorted(engines, key=lambda engine: engine.name)),
            leaving=others,
            routers=_routers(pool, revision),
            not_created=_not_created(pool, revision),
            runs=("ControllerRevision", revision_name(pool.identity, revision)) in pool.owned,
            serving=_is_serving(pool, revision),
            plugin_version=frozen.plugin_version,
            newest_plugin_version=self.installation.plugin_version,
            floors=self.floors,
            watchlist=watchlist,
            judged=of_spec,
        )
        cap = observed.applied_tokens
        pods = frozenset(router.uid for router in observed.routers)
        known = memory.known(Fronts(revision, cap, pods) if cap is not None else None)
        served = flag(next(iter(frozen.templates.values())), "--served-model-name") or pool.spec.model.served_name
        return Gathered(replace(observed, known=known), frozen, which.number, served, which.is_target)

    async def _engine(self, pod: PodFacts, frozen: Frozen, pool: PoolIdentity, memory: PoolMemory) -> Engine:
        template = frozen.templates.get(pod.role, {})
        kind = _TYPES[flag(template, "--disaggregation-mode") or "decode"]
        port = int(flag(template, "--disaggregation-bootstrap-port") or 0)
        engine = Engine(pod, kind, port, environment=variables(template))
        if not pod.started or pod.ip is None:
            return engine
        status = await self.doors.status(pod.ip)
        if isinstance(status, Unanswered):
            return replace(engine, silent=f"its door does not answer ({status.why})", unheard=True)
        if (status.pool, status.pod) != (pool.uid, pod.uid):
            return replace(engine, silent="what answers at its address is the door of another pod")
        if not status.started:
            return replace(engine, silent=status.fault or "its door says that it is still starting")
        engine = replace(engine, boot=boot_of(status))
        known = memory.facts.get(status.nonces)
        said = known or await self._facts(engine, flag(template, "--served-model-name") or "")
        if isinstance(said, str):
            return replace(engine, silent=said)
        if said.repeats_nonce or not status.key:  # else its ranks are asked again with the next look
            memory.facts[status.nonces] = said
        return replace(engine, facts=said)

    async def _facts(self, engine: Engine, served_name: str) -> Facts | str:
        """Ask the running server; return why not, when it does not say what it should."""
        host, nonce = engine.pod.ip or "", attestation.draw()
        said = await fetch(self.web, f"http://{bracketed(host)}:{HTTP_PORT}", nonce)
        if isinstance(said, Unanswered):
            return f"its server does not answer ({said.why})"
        facts = facts_of(said, engine, served_name)
        if isinstance(facts, str):
            return facts
        after = await self.doors.status(host)  # the ranks were asked by the server just now
        if isinstance(after, Unanswered) or engine.boot is None or after.nonces != engine.boot.nonces:
            return facts
        return replace(facts, repeats_nonce=attestation.repeats(nonce, tuple(rank.attested for rank in after.ranks)))


def _judged(engine: Engine, watchlist: Watchlist, memory: PoolMemory) -> Engine:
    """Judge an engine that answers by the advisories that count in this look."""
    if engine.boot is None or engine.facts is None:
        return engine
    return replace(engine, judged=memory.judged_boot(watchlist, engine.boot.nonces, running(engine)))


def facts_of(said: ServerFacts, engine: Engine, served_name: str) -> Facts | str:
    """Return what counts of a server's own words, or why it is not the server that was asked for."""
    if _TYPES.get(said.disaggregation_mode or "") is not engine.type:
        return f"its server does not say that it is a {engine.type.lower()} server"
    if served_name not in said.served_models:
        return "its server does not serve the pool's model under its name"
    assert engine.boot is not None
    if said.version is not None and engine.boot.sglang is not None and said.version != engine.boot.sglang:
        return "its server and its door name different releases of SGLang"
    return Facts(
        version=said.version,
        kv_checksum=said.kv_checksum,
        reserved_decode_tokens=said.reserved_decode_tokens,
        auto_truncates=said.allow_auto_truncate,
        settings=said.settings,
    )


def boot_of(status: DoorStatus) -> Boot:
    """Return what a door says in the words of the domain."""
    return Boot(
        nonces=status.nonces,
        door=DoorState(status.door.value),
        epoch=status.epoch,
        cap=status.cap,
        peers=tuple(sorted(status.peers)),
        sglang=status.sglang,
        ranks=tuple(Rank(r.index, r.pool_tokens, r.page_size, r.boot_input_limit, r.attested) for r in status.ranks),
        applied=status.applied,
        key=status.key,
        partners=tuple(sorted(status.partners, key=lambda one: (one.control, one.key))),
        blown=status.blown,
    )


def bracketed(ip: str) -> str:
    """Return an address as it stands in a URL."""
    return f"[{ip}]" if ":" in ip else ip


def _revision(pool: PoolObjects, installation: Installation, *, may_start: bool, may_go_on: bool) -> _Revision:
    """Return which revision is worked on: what is asked for, or, where that may not run, the newest that does."""
    stored = {
        str(_labels(obj).get(REVISION_LABEL, "")): obj
        for (kind, _), obj in sorted(pool.owned.items())
        if kind == "ControllerRevision"
    }
    target = revision_hash(pool.spec)
    if (known := stored.get(target)) is not None:  # the declared version is not in the hash
        return _Revision(target, _thawed(known), int(known.get("revision", 0)), is_target=may_go_on)
    newest = max(stored.items(), key=lambda item: int(item[1].get("revision", 0)), default=None)
    if newest is not None and not may_start:
        revision, known = newest
        return _Revision(revision, _thawed(known), int(known.get("revision", 0)), is_target=False)
    number = int(newest[1].get("revision", 0)) if newest is not None else 0
    return _Revision(target, _freeze(pool, target, installation), number + 1)


def _thawed(stored: Object) -> Frozen:
    try:
        return frozen_of(stored)
    except ValueError as error:
        raise PoolUnreadableError(
            f"This operator cannot read ControllerRevision {stored['metadata']['name']}: {error}. Use an operator that "
            "is not older than the one that made it."
        ) from error


def _is_below(spec: PoolSpec, floors: Floors) -> bool:
    return declared_version(Declared.of(spec), floors).status is ConditionStatus.FALSE


def _freeze(pool: PoolObjects, revision: str, installation: Installation) -> Frozen:
    version = pool.spec.engine.sglang.plugin_version or installation.plugin_version
    image = installation.injection_image(version)
    templates = {
        role.name: pod_template(pool.identity, pool.spec, role, revision, image, defended=has_page_defences(version))
        for role in pool.spec.roles
    }
    return Frozen(version, start_tokens(pool.spec), templates)


def _roles(pool: PoolObjects, revision: _Revision) -> tuple[Role, ...]:
    """The revision's roles. How many engines each has is the spec's to say, unless that spec may not run."""
    if revision.is_target:
        replicas = {role.name: role.replicas for role in pool.spec.roles}
    else:
        replicas = {name: _live_replicas(pool, name, revision.name) for name in revision.frozen.templates}
    return tuple(
        Role(name, _TYPES[flag(template, "--disaggregation-mode") or "decode"], replicas[name])
        for name, template in sorted(revision.frozen.templates.items())
    )


def _live_replicas(pool: PoolObjects, role: str, revision: str) -> int:
    deployment = pool.owned.get(("Deployment", workload_name(pool.identity, role, revision)), {})
    return int((deployment.get("spec") or {}).get("replicas", 1))


def _is_serving(pool: PoolObjects, revision: str) -> bool:
    """Whether the pool's own Service leads to the revision."""
    made = pool.owned.get(("Service", service_name(pool.identity)), {})
    return ((made.get("spec") or {}).get("selector") or {}).get(REVISION_LABEL) == revision


def _pods_of(pool: PoolObjects, revision: str, roles: Collection[str]) -> tuple[list[PodFacts], int]:
    """Return the revision's engines, and how many pods with engines are leaving."""
    mine: list[PodFacts] = []
    others = 0
    for pod in pool.pods:
        labels = _labels(pod)
        if labels.get(COMPONENT_LABEL) != Component.ENGINE:
            continue
        facts = pod_facts(pod, "engine", labels.get(ROLE_LABEL, ""))
        if facts.role not in roles and labels.get(REVISION_LABEL) == revision:  # none of ours, whatever its labels say
            continue
        if labels.get(REVISION_LABEL) == revision and not facts.deleting:
            mine.append(facts)
        else:
            others += 1
    return mine, others


def _routers(pool: PoolObjects, revision: str) -> tuple[PodFacts, ...]:
    found = (
        pod_facts(pod, "router")
        for pod in pool.pods
        if (_labels(pod).get(COMPONENT_LABEL), _labels(pod).get(REVISION_LABEL)) == (Component.ROUTER, revision)
    )
    return tuple(sorted((facts for facts in found if not facts.deleting), key=lambda facts: facts.name))


def _not_created(pool: PoolObjects, revision: str) -> tuple[str, ...]:
    """Return what Deployments say of pods that could not be made."""
    return tuple(
        str(condition.get("message", ""))
        for (kind, _), obj in sorted(pool.owned.items())
        if kind == "Deployment" and _labels(obj).get(REVISION_LABEL) == revision
        for condition in (obj.get("status") or {}).get("conditions") or ()
        if (condition.get("type"), condition.get("status")) == ("ReplicaFailure", "True")
    )


def _labels(pod: Mapping[str, Any]) -> Mapping[str, str]:
    return pod["metadata"].get("labels") or {}
