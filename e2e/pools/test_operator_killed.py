"""The operator is killed at each moment of a coming-up: it goes on to the same end, and no engine is started anew.

At the level of the API, where a coming-up takes seconds: API server and controllers are real, and so are the operator,
a process that is killed with -9, and everything of the door. What stands in for SGLang, smg and the kubelet is in
`stand_ins`; the same with real engines is in `test_boot_identity.py`.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from e2e.chart import crd
from e2e.cluster.stage import Stage
from e2e.cluster.waiting import wait_for
from e2e.errors import StageError
from e2e.pools.stand_ins import network
from e2e.pools.stand_ins.kubelet import Kubelet, kubelet
from e2e.pools.stand_ins.moments import Moment, Moments
from e2e.pools.stand_ins.operator import OperatorProcess

CAP = 1003
"""98 % of the 1,024 tokens of a prefill engine's KV pool, in pages of one token."""

SECONDS = 60.0
ALIKE_SECONDS = 10.0
UNDISTURBED = "undisturbed"


@dataclass
class World:
    """A namespace with an operator that can be killed, and pools that come up one after the other."""

    stage: Stage
    namespace: str
    operator: OperatorProcess
    kubelet: Kubelet
    moments: Moments

    def apply(self, name: str) -> None:
        pool = {
            "apiVersion": "kvfence.io/v1alpha1",
            "kind": "InferencePool",
            "metadata": {"name": name},
            "spec": {
                "model": {"servedName": "tiny", "uri": "file:///models/tiny"},
                "contextLength": {"requestedTokens": 4096},
                "engine": {"sglang": {"image": "kvfence.io/test/sglang:0.5.23", "version": "0.5.23"}},
                "roles": [{"name": "prefill", "type": "Prefill"}, {"name": "decode", "type": "Decode"}],
            },
        }
        self.stage.kubectl.run("apply", "--namespace", self.namespace, "--filename", "-", given=json.dumps(pool))

    def kill_operator_at(self, moment: Moment) -> None:
        known = {pool["metadata"]["uid"] for pool in self.kubelet.seen.pools.values()}
        self.moments.at(moment, self.operator.kill, known)

    def start_operator(self) -> None:
        self.moments.go_on()
        self.operator.start()

    def wait_until_admitted(self, name: str) -> None:
        def admitted() -> bool:
            if self.kubelet.failure is not None:
                raise self.kubelet.failure
            return self.kubelet.conditions(name).get("Ready", {}).get("status") == "True"

        try:
            wait_for(f"pool {name} to serve", admitted, SECONDS)
        except StageError as error:
            conditions = json.dumps(self.kubelet.conditions(name), indent=1)
            raise StageError(f"{error}\n{conditions}\n{self.operator.tail()}") from error

    def wait_until_alike(self, pool: str) -> None:
        """Wait for the look after the one that let users in: it words one condition in another way."""
        with contextlib.suppress(StageError):
            wait_for("another look", lambda: self.end_state(pool) == self.end_state(UNDISTURBED), ALIKE_SECONDS)

    def delete(self, pool: str) -> None:
        self.stage.kubectl.run("delete", "inferencepools.kvfence.io", pool, "--namespace", self.namespace)

    def pods(self, pool: str) -> dict[str, tuple[str, ...]]:
        """UIDs of the pods, with the nonces of the boot in each."""
        return {
            uid: self.kubelet.engines[uid].nonces if uid in self.kubelet.engines else ()
            for uid in self.kubelet.pods_of(pool)
        }

    def doors(self, pool: str) -> dict[str, Any]:
        """What each door was granted, by the UID of its pod."""
        return {engine.pod.uid: engine.grant for engine in self.kubelet.engines_of(pool)}

    def end_state(self, pool: str) -> dict[str, Any]:
        """What a pool has come to, in words that are the same for each."""
        seen = self.kubelet.seen
        pods = {uid: pod["metadata"] for uid, pod in self.kubelet.pods_of(pool).items()}
        names = {meta["name"]: f"THE-{meta['labels'].get('kvfence.io/role', 'router')}" for meta in pods.values()}
        status = seen.pools[pool]["status"]
        revision = status["currentRevision"]
        context = {key: value for key, value in status["contextLength"].items() if key != "measurementTime"}
        engines = self.kubelet.engines_of(pool)
        files = seen.config_maps[f"{pool}-router-{revision}"]["data"]
        found = {
            "conditions": [[one[k] for k in ("type", "status", "reason", "message")] for one in status["conditions"]],
            "context": context,
            "roles": status["roles"],
            "served": seen.services[pool]["spec"]["selector"]["kvfence.io/revision"] == revision,
            "doors": sorted((e.pod.prefill, e.grant.door.value, e.grant.cap, e.grant.passes) for e in engines),
            "models": json.loads(files["models.json"]),
            "generations": sorted(d["metadata"]["generation"] for d in self._deployments(pool)),
            "pods": len(pods),
        }
        prefill = next(engine.pod.ip for engine in engines if engine.pod.prefill)
        assert all(engine.grant.peers == (f"{prefill}:8998",) for engine in engines)
        assert {one["url"] for one in json.loads(files["workers.json"])["workers"]} == {e.url for e in engines}
        text = json.dumps(found)
        for name, words in names.items():
            text = text.replace(name, words)
        return dict(json.loads(text))

    def _deployments(self, pool: str) -> list[dict[str, Any]]:
        return [one for one in self.kubelet.seen.deployments if one["metadata"]["labels"]["kvfence.io/pool"] == pool]


@pytest.fixture(scope="module")
def namespace(api: Stage) -> Iterator[str]:
    """With the CRD beside it, which other tests of this run may have applied."""
    there = crd.is_there(api.kubectl)
    if not there:
        crd.apply(api.kubectl)
    name = f"test-{secrets.token_hex(4)}"
    api.kubectl.run("create", "namespace", name)
    yield name
    api.kubectl.run("delete", "namespace", name, "--timeout=60s")
    if not there:
        crd.remove(api.kubectl)


@pytest.fixture(scope="module")
def world(api: Stage, namespace: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """With one pool that came up undisturbed."""
    moments = Moments()
    operator = OperatorProcess(api, namespace, tmp_path_factory.mktemp("operator") / "log")
    with pytest.MonkeyPatch.context() as patched, network.joined_to(api.node) as pods:
        patched.setenv("KUBECONFIG", str(api.layout.kubeconfig))
        patched.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        with kubelet(namespace, pods, moments) as one:
            made = World(api, namespace, operator, one, moments)
            operator.start()
            try:
                made.apply(UNDISTURBED)
                made.wait_until_admitted(UNDISTURBED)
                yield made
            finally:
                operator.kill()


def test_control_a_pool_comes_up_when_nobody_disturbs_its_operator(world: World) -> None:
    end = world.end_state(UNDISTURBED)
    assert end["context"] == {
        "requestedTokens": 4096,
        "advertisedTokens": CAP,
        "limitingRole": "prefill",
        "limitingPod": "THE-prefill",
        "kvPoolTokens": 1024,
    }
    assert end["doors"] == [[False, "open", CAP, []], [True, "open", CAP, []]]
    assert end["models"]["data"][0]["max_model_len"] == CAP
    assert end["served"]
    assert end["generations"] == [1, 1, 1]
    assert end["pods"] == 3


@pytest.mark.parametrize("moment", Moment, ids=lambda moment: moment.name.lower())
def test_a_coming_up_ends_otherwise_when_the_operator_is_killed(world: World, moment: Moment) -> None:
    other = world.pods(UNDISTURBED), world.doors(UNDISTURBED)
    pool = f"killed-{moment.name.lower().replace('_', '-')}"
    world.kill_operator_at(moment)
    world.apply(pool)
    came = world.moments.wait(SECONDS)
    assert came, f"it never came to this: {moment}; {world.kubelet.failure!r}\n{world.operator.tail()}"
    assert not world.operator.runs()
    wait_for("the controllers to make its pods", lambda: len(world.pods(pool)) == 3, SECONDS)
    pods = world.pods(pool)

    world.start_operator()
    world.wait_until_admitted(pool)
    world.operator.wait_until_it_has_looked(2)
    world.wait_until_alike(pool)
    assert world.end_state(pool) == world.end_state(UNDISTURBED)
    assert world.pods(pool).keys() == pods.keys(), "its pods are those that there were"
    for uid, nonces in world.pods(pool).items():
        assert world.kubelet.boots.get(uid, ()) == nonces, "and no engine was started anew"
    assert (world.pods(UNDISTURBED), world.doors(UNDISTURBED)) == other, "a pool that served was told nothing"
    world.delete(pool)
