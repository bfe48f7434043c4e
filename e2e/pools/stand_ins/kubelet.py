"""A kubelet without containers: gives addresses to the pods that the controllers make, and says how they are."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from e2e.pools.stand_ins.engines import Pod, StandInEngine
from e2e.pools.stand_ins.moments import Moment
from e2e.pools.stand_ins.routers import StandInRouter
from kvfence.kube.client import Kubernetes
from kvfence.kube.errors import Conflict, NotFound
from kvfence.kube.kinds import CONFIG_MAP, DEPLOYMENT, POD, POOL, SERVICE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.pools.stand_ins.moments import Moments
    from e2e.pools.stand_ins.network import PodNetwork
    from kvfence.kube.client import Object

LOOK_SECONDS = 0.2
POOL_TOKENS = {"prefill": 1024, "decode": 4096}
POKE = "kvfence.io/router-config"
"""A change of this annotation has a kubelet bring files of ConfigMaps up to date at once."""


@dataclass
class Seen:
    """The namespace, as it was at the last look."""

    pools: dict[str, Object] = field(default_factory=dict)
    pods: dict[str, Object] = field(default_factory=dict)
    """By UID."""
    deployments: list[Object] = field(default_factory=list)
    services: dict[str, Object] = field(default_factory=dict)
    config_maps: dict[str, Object] = field(default_factory=dict)


@dataclass
class Kubelet:
    """Looks after the pods of one namespace, in a thread of its own."""

    namespace: str
    network: PodNetwork
    moments: Moments
    folder: Path
    seen: Seen = field(default_factory=Seen)
    engines: dict[str, StandInEngine] = field(default_factory=dict)
    """By the UID of the pod, as are the others; what was there once stays here."""
    routers: dict[str, StandInRouter] = field(default_factory=dict)
    boots: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The nonces with which each engine began."""
    failure: BaseException | None = None
    _pokes: dict[str, str] = field(default_factory=dict)
    _said: dict[str, Object] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)

    def pods_of(self, pool: str) -> dict[str, Object]:
        """The pods that are there of a pool, by UID."""
        return {u: p for u, p in self.seen.pods.items() if p["metadata"]["labels"].get("kvfence.io/pool") == pool}

    def engines_of(self, pool: str) -> list[StandInEngine]:
        """The engines in these pods."""
        return [self.engines[uid] for uid in sorted(self.pods_of(pool)) if uid in self.engines]

    def conditions(self, pool: str) -> dict[str, dict[str, Any]]:
        """The conditions of a pool, by type."""
        status = self.seen.pools.get(pool, {}).get("status", {})
        return {one["type"]: one for one in status.get("conditions", [])}

    async def _run(self) -> None:
        ending = asyncio.Event()
        async with asyncio.TaskGroup() as group, await Kubernetes.connect() as kubernetes:
            while not self._stop.is_set():
                await self._look(kubernetes, group, ending)
                await asyncio.sleep(LOOK_SECONDS)
            ending.set()

    async def _look(self, kubernetes: Kubernetes, group: asyncio.TaskGroup, ending: asyncio.Event) -> None:
        pods = await kubernetes.list(POD, self.namespace)  # first: what a pod needs was there before it
        kinds = (POOL, DEPLOYMENT, SERVICE, CONFIG_MAP)
        pools, deployments, services, maps = await asyncio.gather(
            *(kubernetes.list(kind, self.namespace) for kind in kinds)
        )
        by_uid = {pod["metadata"]["uid"]: pod for pod in pods}
        self.seen = Seen(_named(pools), by_uid, deployments, _named(services), _named(maps))
        for pool in pools:
            if _is_admitted(pool):
                self.moments.seen(Moment.ADMITTED, pool["metadata"]["uid"])
            elif pool["metadata"]["name"] in self.seen.services:  # the last object that is applied
                self.moments.seen(Moment.APPLIED, pool["metadata"]["uid"])
        if self.moments.is_over():  # with its operator dead a pool waits as it is
            return
        for pod in pods:
            there = pod["metadata"]["labels"]["kvfence.io/pool"] in self.seen.pools
            if there and not pod["metadata"].get("deletionTimestamp"):
                await self._pod(kubernetes, pod, group, ending)
        self._tell_started()

    async def _pod(self, kubernetes: Kubernetes, pod: Object, group: asyncio.TaskGroup, ending: asyncio.Event) -> None:
        uid, labels = pod["metadata"]["uid"], pod["metadata"]["labels"]
        if labels["kvfence.io/component"] == "engine":
            if uid not in self.engines:
                self.engines[uid] = engine = self._engine(pod)
                self.boots[uid] = engine.nonces
                group.create_task(engine.run(ending))
            engine = self.engines[uid]
            ready, ip, container = engine.grant.door.value == "open", engine.pod.ip, "engine"
        else:
            if uid not in self.routers:
                ip, pool = self.network.address(), labels["kvfence.io/pool-uid"]
                self.routers[uid] = StandInRouter(ip, pool, self.network, self._find, self.moments)
                group.create_task(self.routers[uid].run(ending))
            router = self.routers[uid]
            self._bring_files(pod, router)
            ready, ip, container = await router.is_ready(), router.ip, "router"
        await self._say(kubernetes, pod, ip, container, ready=ready)

    def _engine(self, pod: Object) -> StandInEngine:
        meta = pod["metadata"]
        pool, role = meta["labels"]["kvfence.io/pool"], meta["labels"]["kvfence.io/role"]
        keys = self.folder / meta["uid"]
        keys.mkdir()
        for name, text in self.seen.config_maps[f"{pool}-kvfence-keys"]["data"].items():
            (keys / name).write_text(text)
        about = Pod(
            pool=meta["labels"]["kvfence.io/pool-uid"],
            uid=meta["uid"],
            ip=self.network.address(),
            prefill=role == "prefill",
            pool_tokens=POOL_TOKENS[role],
            keys=keys,
        )
        return StandInEngine(about, self.network, self.moments)

    def _find(self, url: str) -> StandInEngine | None:
        return next((engine for engine in self.engines.values() if engine.url == url), None)

    def _bring_files(self, pod: Object, router: StandInRouter) -> None:
        uid, poke = pod["metadata"]["uid"], (pod["metadata"].get("annotations") or {}).get(POKE, "")
        if self._pokes.get(uid) == poke:
            return
        self._pokes[uid] = poke
        labels = pod["metadata"]["labels"]
        name = f"{labels['kvfence.io/pool']}-router-{labels['kvfence.io/revision']}"
        router.files = self.seen.config_maps[name]["data"]
        if router.listed():
            self.moments.seen(Moment.PAIRS_PROVEN, labels["kvfence.io/pool-uid"])

    async def _say(self, kubernetes: Kubernetes, pod: Object, ip: str, container: str, *, ready: bool) -> None:
        meta = pod["metadata"]
        image = {"image": "kvfence.io/test/some:1", "imageID": "sha256:1"}
        one = {"name": container, "ready": ready, "started": True, "restartCount": 0, **image}
        running = {"running": {"startedAt": meta["creationTimestamp"]}}
        status = {
            "phase": "Running",
            "podIP": ip,
            "podIPs": [{"ip": ip}],
            "containerStatuses": [one | {"state": running}],
            "conditions": [{"type": "Ready", "status": str(ready)}],
        }
        if self._said.get(meta["uid"]) == status:
            return
        self._said[meta["uid"]] = status
        about = {"namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}
        with contextlib.suppress(NotFound, Conflict):  # it was deleted meanwhile
            await kubernetes.apply_status({"apiVersion": "v1", "kind": "Pod", "metadata": about, "status": status})

    def _tell_started(self) -> None:
        for name, pool in self.seen.pools.items():
            if len(self.engines_of(name)) == len(POOL_TOKENS):
                self.moments.seen(Moment.STARTED, pool["metadata"]["uid"])


@contextmanager
def kubelet(namespace: str, network: PodNetwork, moments: Moments) -> Iterator[Kubelet]:
    """Have one at work; it finds the API server as kubectl does."""
    with tempfile.TemporaryDirectory() as folder:
        one = Kubelet(namespace, network, moments, Path(folder))

        def run() -> None:
            try:
                asyncio.run(one._run())
            except BaseException as error:  # noqa: BLE001 - whoever waits for the kubelet is to be told
                one.failure = error

        thread = threading.Thread(target=run, name="kubelet")
        thread.start()
        try:
            yield one
        finally:
            one._stop.set()
            thread.join()


def _named(objects: list[Object]) -> dict[str, Object]:
    return {str(one["metadata"]["name"]): one for one in objects}


def _is_admitted(pool: Object) -> bool:
    said = pool.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in said)
