"""A namespace with an API server, a kubelet and engines, all in memory; and the operator's reconciler in it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import copy
import hashlib
import itertools
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvfence.controller.cuts import Cuts
from kvfence.controller.gathering import Gatherer
from kvfence.controller.jobs import Jobs
from kvfence.controller.keys import Keys
from kvfence.controller.queue import Key, WorkQueue
from kvfence.controller.reconciling import Reconciler
from kvfence.controller.watchlists import Watchlists
from kvfence.domain.advisories import CutLimit
from kvfence.domain.verdicts import Check, Outcome, Verdict
from kvfence.domain.versions import DEFAULT_FLOORS
from kvfence.engine.admission import Signer
from kvfence.kube.client import Object
from kvfence.kube.kinds import CONFIG_MAP, DEPLOYMENT, POD, SERVICE
from kvfence.render.settings import Installation
from kvfence.verify import pair_suite
from kvfence.verify.evidence import Evidence
from kvfence.verify.front_door import Front
from tests.unit.controller.fake_engines import Doors, FakeEngine, Wire
from tests.unit.controller.fake_kubernetes import FakeKubernetes
from tests.unit.controller.virtual_time import now

KEY: Key = ("ns", "pool")
MOST_LOOKS = 60
"""At a pool that comes up; more is a hot loop."""

INSTALLATION = Installation(
    engine_image_repository="kvfence.io/kvfence-engine",
    plugin_version="0.1.0",
    router_image="kvfence.io/smg:1",
    front_image="kvfence.io/nginx:1",
    operator_namespace="kvfence",
    operator_labels={"app.kubernetes.io/name": "kvfence"},
)


def pool_object(prefill: int = 1, decode: int = 1, uid: str = "pool-uid-1") -> Object:
    """Return a pool that asks for 4,096 tokens; its prefill engines hold 1,024."""
    roles = [
        {"name": "prefill", "type": "Prefill", "replicas": prefill},
        {"name": "decode", "type": "Decode", "replicas": decode},
    ]
    return {
        "apiVersion": "kvfence.io/v1alpha1",
        "kind": "InferencePool",
        "metadata": {"name": "pool", "namespace": "ns", "uid": uid, "generation": 1},
        "spec": {
            "model": {"servedName": "tiny", "uri": "file:///models/tiny"},
            "contextLength": {"requestedTokens": 4096},
            "engine": {"sglang": {"image": "example.com/sglang:0.5.23", "version": "0.5.23"}},
            "roles": roles,
        },
    }


@dataclass(frozen=True)
class Proof:
    """One check that was asked for."""

    at: float
    subject: str
    limits: pair_suite.Limits | None = None


class World:
    """Drive it with `look` and `settle` by hand, or with `operate` through the work queue in virtual time."""

    def __init__(self, folder: Path) -> None:
        self.kubernetes = FakeKubernetes(self._changed)
        self.wire = Wire()
        self.keys_folder = folder
        self.seed = random.Random(7).randbytes(32)
        self.looks: list[float] = []
        self.pairs: list[Proof] = []
        self.fronts: list[Proof] = []
        self.passes: list[str] = []
        self.pair_outcome: Callable[[str], Outcome] = lambda _: Outcome.PASSED
        self.front_outcome: Callable[[str], Outcome] = lambda _: Outcome.PASSED
        self.during_proof: Callable[[], None] = lambda: None
        self.proof_seconds = 1.0
        self.pending = False
        self.made: list[FakeEngine] = []
        self.held: set[str] = set()
        """Roles whose engines do not start yet."""
        self.images: dict[str, str] = {}
        """Digests of the images of roles whose tag was moved."""
        self.watchlists = Watchlists()
        self.cut_limit: CutLimit | None = None
        self._queue: WorkQueue | None = None
        self._numbers = itertools.count(1)
        self._later: asyncio.Handle | None = None
        self.start_operator()

    # --- the operator ---

    def start_operator(self) -> None:
        """Start it, with nothing in its memory."""
        signer = Signer.from_seed(self.seed)
        keys = Keys(signer, {"current": signer.public_bytes})
        doors = Doors(self.wire)
        self.reconciler = Reconciler(
            kubernetes=self.kubernetes,
            gatherer=Gatherer(doors, self.wire, INSTALLATION, DEFAULT_FLOORS, self.watchlists),
            cuts=Cuts(self.cut_limit),
            jobs=Jobs(doors, signer),
            installation=INSTALLATION,
            keys=keys,
            wake=self._wake,
        )

    async def kill_operator(self) -> None:
        """End it in the middle of whatever it does, and start another."""
        jobs = self.jobs()
        for job in jobs:
            job.cancel()
        if jobs:
            await asyncio.wait(jobs)
        self.start_operator()
        self.pending = True

    def ask_for(self, change: Callable[[Object], object]) -> None:
        """Have a person change the spec."""
        pool = copy.deepcopy(self.kubernetes.pool())
        change(pool["spec"])
        pool["metadata"]["generation"] += 1
        self.kubernetes.put(pool)

    async def look(self) -> float | None:
        """Have the operator look at the pool once."""
        self.pending = False
        self.looks.append(now())
        return await self.reconciler.reconcile(KEY)

    def jobs(self) -> set[asyncio.Task[Any]]:
        """Return what takes time and is being done."""
        return {task for task in asyncio.all_tasks() if " of ns/pool" in task.get_name()}

    async def settle(self) -> float | None:
        """Go on until nothing happens any more; return when the operator wants to look again."""
        after: float | None = None
        for _ in range(MOST_LOOKS):
            self.kubelet()
            if self.pending:
                after = await self.look()
            elif jobs := self.jobs():
                await asyncio.wait(jobs)
            else:
                return after
        raise AssertionError(f"it does not settle: {self.conditions()}")

    @contextlib.asynccontextmanager
    async def _operating(self) -> Any:
        async def work(key: Key) -> float | None:
            self.looks.append(now())
            return await self.reconciler.reconcile(key)

        self._queue = queue = WorkQueue(work, 2, random.Random(1))
        queue.add(KEY)
        task = asyncio.create_task(queue.run())
        try:
            yield queue
        finally:
            self._queue = None
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def operate(self, seconds: float) -> None:
        """Let operator and kubelet go on for so long."""
        async with self._operating():
            self.kubelet()
            await asyncio.sleep(seconds)

    def _wake(self, key: Key) -> None:
        assert key == KEY
        self.pending = True
        if self._queue is not None:
            self._queue.add(key)

    def _changed(self, _: Object) -> None:
        self._wake(KEY)
        if self._queue is not None and self._later is None:
            self._later = asyncio.get_running_loop().call_later(0.05, self._kubelet_now)

    def _kubelet_now(self) -> None:
        self._later = None
        self.kubelet()

    def close(self) -> None:
        """Give the engines' memory back."""
        for engine in self.made:
            engine.close()

    # --- the kubelet and the Deployment controller ---

    def kubelet(self) -> None:
        """Make and remove pods, start engines, report who is ready."""
        for config in self.kubernetes.all(CONFIG_MAP):
            if config["metadata"]["name"] == "pool-kvfence-keys":
                for name, text in config["data"].items():
                    if not (self.keys_folder / name).exists():
                        (self.keys_folder / name).write_text(text)
        wanted = {f"{d['metadata']['name']}-{i}": d for d in self._deployments() for i in range(d["spec"]["replicas"])}
        for pod in self.kubernetes.all(POD):
            if pod["metadata"]["name"] not in wanted:
                self.wire.engines.pop(pod["status"]["podIP"], None)
                self.kubernetes.remove(("Pod", "ns", pod["metadata"]["name"]))
        for name, deployment in wanted.items():
            self._pod(name, deployment)

    def _deployments(self) -> list[Object]:
        return [d for d in self.kubernetes.all(DEPLOYMENT) if d["metadata"]["ownerReferences"][0]["name"] == "pool"]

    def _pod(self, name: str, deployment: Object) -> None:
        live = self.kubernetes.objects.get(("Pod", "ns", name))
        template = deployment["spec"]["template"]
        role = template["metadata"]["labels"].get("kvfence.io/role", "router")
        if live is None:
            ip, uid = f"10.0.0.{next(self._numbers)}", f"pod-uid-{next(self._numbers)}"
            metadata = {"name": name, "namespace": "ns", "uid": uid, "labels": template["metadata"]["labels"]}
            live = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"podIP": ip}}
            self.kubernetes.put(live)
            return
        made = copy.deepcopy(live)
        ready = self._router_is_ready() if "engine" not in _containers(template) else self._engine_is_ready(role, made)
        made["status"]["conditions"] = [{"type": "Ready", "status": str(ready)}]
        self.kubernetes.put(made)

    def _engine_is_ready(self, role: str, pod: Object) -> bool:
        ip = pod["status"]["podIP"]
        if role in self.held:
            return False
        if ip not in self.wire.engines:
            labels, size = pod["metadata"]["labels"], 1024 if role == "prefill" else 4096
            pool, uid = labels["kvfence.io/pool-uid"], pod["metadata"]["uid"]
            self.wire.engines[ip] = FakeEngine(pool, uid, role, self.keys_folder, size)
            self.made.append(self.wire.engines[ip])
        image = self.images.get(role, "abc")
        main = {"name": "engine", "started": True, "state": {"running": {}}, "imageID": f"sglang@sha256:{image}"}
        pod["status"]["containerStatuses"] = [main]
        return self.wire.engines[ip].door == "open" and not self.wire.engines[ip].unready

    def _router_is_ready(self) -> bool:
        engines = [self.wire.engines.get(worker["url"].split("/")[2].split(":")[0]) for worker in self.workers()]
        healthy = {engine.mode for engine in engines if engine is not None and engine.is_healthy}
        return healthy == {"prefill", "decode"}

    # --- the checks, scripted ---

    async def prove_pair(
        self,
        client: object,
        subject: pair_suite.Subject,
        limits: pair_suite.Limits,
        passes: Iterator[str],
        chance: object,
        asked: Evidence,
    ) -> tuple[Verdict, ...]:
        """Stand in for `pair_suite.prove_pair`: takes a second, and every pass has to be known."""
        assert asked.enforced == {"pageTagging", "pageScrubbing", "coverage"}
        legs = {"prefill": subject.pair.prefill_url, "decode": subject.pair.decode_url}
        hosts = {leg: url.split("/")[2].split(":")[0] for leg, url in legs.items()}
        assert asked.hosts == {leg: host for leg, host in hosts.items() if self.wire.engines[host].door != "open"}
        self.pairs.append(Proof(now(), subject.name, limits))
        shown = list(passes)
        self.passes += shown
        for url in (subject.pair.prefill_url, subject.pair.decode_url):
            self._expect_canaries(self.wire.engines[url.split("/")[2].split(":")[0]], shown)
        self.during_proof()
        await asyncio.sleep(self.proof_seconds)
        outcome = self.pair_outcome(subject.name)
        return (
            Verdict(Check.MARKER_ISOLATION, outcome, subject.name, "" if outcome is Outcome.PASSED else "seen"),
            Verdict(Check.OVERLONG_PROMPT, Outcome.PASSED, subject.name),
        )

    async def prove_front(self, web: object, front: Front, passes: Iterator[str]) -> Verdict:
        """Stand in for `front_door.prove_front`."""
        self.fronts.append(Proof(now(), front.name))
        assert front.workers == {worker["url"] for worker in self.workers()}
        await asyncio.sleep(self.proof_seconds)
        outcome = self.front_outcome(front.name)
        return Verdict(Check.FRONT_DOOR, outcome, front.name, "" if outcome is Outcome.PASSED else "seen")

    def _expect_canaries(self, engine: FakeEngine, shown: list[str]) -> None:
        if engine.door != "open":
            assert engine.door == "canary"
            assert {hashlib.sha256(one.encode()).hexdigest() for one in shown} == set(engine.grant.passes)

    # --- what there is to see ---

    def workers(self) -> list[dict[str, Any]]:
        """Return the router's list."""
        found = [c["data"]["workers.json"] for c in self.kubernetes.all(CONFIG_MAP) if "workers.json" in c["data"]]
        return [worker for text in found for worker in json.loads(text)["workers"]]

    def models(self) -> list[dict[str, Any]]:
        """Return what users see of the models."""
        (found,) = [c["data"]["models.json"] for c in self.kubernetes.all(CONFIG_MAP) if "models.json" in c["data"]]
        return list(json.loads(found)["data"])

    def served(self) -> str:
        """Return the revision that the Service leads to."""
        (found,) = self.kubernetes.all(SERVICE)
        return str(found["spec"]["selector"]["kvfence.io/revision"])

    def conditions(self) -> dict[str, tuple[str, str]]:
        """Return status and reason by type."""
        said = (self.kubernetes.pool().get("status") or {}).get("conditions", [])
        return {one["type"]: (one["status"], one["reason"]) for one in said}

    def message(self, condition: str) -> str:
        """Return what a condition says."""
        said = self.kubernetes.pool()["status"]["conditions"]
        return str(next(one["message"] for one in said if one["type"] == condition))

    def engines(self, mode: str = "") -> list[FakeEngine]:
        """Return the engines, of one mode or of both."""
        return [engine for engine in self.wire.engines.values() if mode in {"", engine.mode}]

    def doors(self) -> list[str]:
        """Return how the doors stand."""
        return [engine.door for engine in self.engines()]

    def peers(self) -> list[str]:
        """Return who decode engines are to ask."""
        return sorted(f"{ip}:8998" for ip, engine in self.wire.engines.items() if engine.mode == "prefill")

    def told(self) -> list[dict[str, Any]]:
        """Return every admission that was handed over."""
        return [message for engine in self.engines() for message in engine.told]

    def public_key(self) -> str:
        """Return the public key as engines get it."""
        return base64.b64encode(Signer.from_seed(self.seed).public_bytes).decode()


def _containers(template: Object) -> set[str]:
    return {one["name"] for one in template["spec"]["containers"]}
