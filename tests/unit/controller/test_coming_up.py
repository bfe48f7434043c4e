"""From an empty namespace to a pool that is admitted: what is made, who is told what, and in which order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from kvfence.kube.client import Object
from kvfence.kube.kinds import CHILDREN, EVENT
from tests.unit.controller.virtual_time import run
from tests.unit.controller.world import MOST_LOOKS, World

CAP = 1003
"""98 % of the 1,024 tokens of a prefill engine, in pages of one token."""

LOOKS, WRITES = 12, 30
"""Of an operator that nobody kills."""

MakeWorld = Callable[..., World]


def end_state(world: World) -> dict[str, Any]:
    """Return what a pool has come to, without times, versions and numbers that count how often."""
    objects = {}
    for kind in CHILDREN:
        for one in world.kubernetes.all(kind):
            meta = {key: value for key, value in one["metadata"].items() if key not in {"resourceVersion", "uid"}}
            objects[kind.kind, one["metadata"]["name"]] = one | {"metadata": meta}
    status = json.loads(json.dumps(world.kubernetes.pool()["status"]))
    for condition in status["conditions"]:
        del condition["lastTransitionTime"]
    status["contextLength"].pop("measurementTime")
    doors = sorted((e.mode, e.door, e.grant.cap, e.grant.peers, e.grant.passes) for e in world.engines())
    return {"objects": objects, "status": status, "doors": doors, "models": world.models()}


def test_the_first_look_makes_everything_and_lets_nobody_in(world: World) -> None:
    async def go() -> None:
        after = await world.look()
        assert after is None, "an event will tell"
        made = [(verb, kind) for verb, kind, _ in world.kubernetes.wrote if kind not in {"Event", "InferencePool"}]
        assert {verb for verb, _ in made} == {"apply"}
        assert sorted(kind for _, kind in made) == sorted(
            ["ServiceAccount", "ConfigMap", "NetworkPolicy", "NetworkPolicy", "ControllerRevision", "ConfigMap"]
            + ["Deployment"] * 3
            + ["Service"]
        )
        first_pods = [kind for _, kind in made].index("Deployment")
        assert {"ServiceAccount", "NetworkPolicy", "ControllerRevision"} <= {kind for _, kind in made[:first_pods]}
        assert (world.served(), world.workers(), world.models()) == ("none", [], [])
        assert world.conditions()["Ready"] == ("False", "EnginesStarting")
        for kind in CHILDREN:
            for one in world.kubernetes.all(kind):
                (owner,) = one["metadata"]["ownerReferences"]
                assert (owner["uid"], owner["controller"]) == ("pool-uid-1", True)
                assert "finalizers" not in one["metadata"]

    run(go())


def test_a_pool_comes_up_canaries_first_doors_next_and_users_last(world: World) -> None:
    seen_with_service: list[list[str]] = []

    def watch(obj: Object) -> None:
        if obj["kind"] == "Service" and obj["spec"]["selector"]["kvfence.io/revision"] != "none":
            seen_with_service.append(world.doors())
        changed(obj)

    changed, world.kubernetes.on_change = world.kubernetes.on_change, watch

    async def go() -> None:
        assert await world.settle() is None
        assert world.conditions()["Ready"] == ("True", "Serving")
        assert seen_with_service == [["open", "open"]], "the Service leads there once all doors are open, not before"
        revision = world.kubernetes.pool()["status"]["currentRevision"]
        assert world.served() == revision
        assert [(len(world.pairs), len(world.fronts))] == [(1, 1)]
        for engine in world.engines():
            assert [said["door"] for said in engine.told] == ["canary", "canary", "open"]
            assert [said["epoch"] for said in engine.told] == [1, 2, 3]
            assert {said["cap"] for said in engine.told} == {CAP}
            assert {tuple(said["peers"]) for said in engine.told} == {tuple(world.peers())}
            assert {said["pool"] for said in engine.told} == {"pool-uid-1"}
            assert engine.told[0]["passes"]
            assert engine.told[2]["passes"] == []
            assert set(engine.told[0]["passes"]).isdisjoint(engine.told[1]["passes"])
        assert [(m["id"], m["max_model_len"]) for m in world.models()] == [("tiny", CAP)]
        assert len(world.workers()) == 2
        assert len(world.looks) <= 15

    run(go())


def test_the_status_says_what_was_measured_and_what_is_on_offer(world: World) -> None:
    async def go() -> None:
        await world.settle()
        status = world.kubernetes.pool()["status"]
        context = status["contextLength"]
        assert (context["requestedTokens"], context["advertisedTokens"], context["kvPoolTokens"]) == (4096, CAP, 1024)
        assert context["limitingRole"] == "prefill"
        assert context["limitingPod"].startswith("pool-prefill-")
        roles = {
            role["name"]: (role["replicas"], role["readyReplicas"], role["admittedReplicas"])
            for role in status["roles"]
        }
        assert roles == {"prefill": (1, 1, 1), "decode": (1, 1, 1)}
        assert status["observedGeneration"] == 1
        assert {one[0] for one in world.conditions().values()} == {"True", "False"}

    run(go())


def test_the_checks_are_told_what_was_measured_and_wait_for_every_engine(make_world: MakeWorld) -> None:
    world = make_world(prefill=2, decode=1)
    world.held.add("decode")

    async def go() -> None:
        await world.settle()
        assert world.told() == [], "one engine is still starting"
        assert world.conditions()["RolesReady"] == ("False", "EnginesStarting")
        world.held.clear()
        await world.settle()
        assert world.doors() == ["open"] * 3
        assert sorted({proof.subject.split()[1].rsplit("-", 1)[1] for proof in world.pairs}) == ["0", "1"]
        assert world.pairs[0].at != world.pairs[1].at, "both need the one decode engine: one after the other"
        for proof in world.pairs:
            assert proof.limits is not None
            assert (proof.limits.cap, proof.limits.requested_tokens) == (CAP, 4096)
            assert (proof.limits.prefill_pool, proof.limits.decode_pool, proof.limits.page_size) == (1024, 4096, 1)
        assert len(world.peers()) == 2
        assert {engine.grant.peers for engine in world.engines()} == {tuple(world.peers())}

    run(go())


def test_no_pass_and_no_private_key_is_in_any_object_or_event(world: World) -> None:
    async def go() -> None:
        await world.settle()
        everything = json.dumps(list(world.kubernetes.objects.values()))
        assert len(world.passes) > 3
        assert not any(one in everything for one in world.passes)
        assert world.public_key() in everything
        assert "of-the-server" not in everything
        told = {event["reason"] for event in world.kubernetes.all(EVENT)}
        assert {"EnginesStarted", "ContextCapped", "IsolationProven", "Admitted"} <= told

    run(go())


_undisturbed: list[dict[str, Any]] = []


def undisturbed(make_world: MakeWorld) -> dict[str, Any]:
    """Return what a pool comes to when nobody kills the operator."""

    async def go(world: World) -> dict[str, Any]:
        await world.settle()
        assert len(world.looks) == LOOKS
        assert world.kubernetes.writes == WRITES
        return end_state(world)

    if not _undisturbed:
        _undisturbed.append(run(go(make_world())))
    return _undisturbed[0]


@pytest.mark.parametrize("look", range(LOOKS))
def test_an_operator_that_is_killed_after_any_look_ends_in_the_same_state(make_world: MakeWorld, look: int) -> None:
    """Some turns of the loop into whatever job that look began."""

    async def killed(world: World) -> dict[str, Any]:
        world.kubelet()
        while len(world.looks) <= look:
            if world.pending:
                await world.look()
            elif jobs := world.jobs():
                await asyncio.wait(jobs)
            world.kubelet()
        for _ in range(25):
            await asyncio.sleep(0)
        await world.kill_operator()
        await world.settle()
        return end_state(world)

    assert run(killed(make_world())) == undisturbed(make_world)


@pytest.mark.parametrize("writes", range(0, WRITES, 3))
def test_an_operator_that_is_killed_between_two_writes_ends_in_the_same_state(
    make_world: MakeWorld, writes: int
) -> None:
    class KilledError(BaseException):
        """Nothing of the operator may catch it."""

    async def go(world: World) -> dict[str, Any]:
        world.kubernetes.before_write = lambda: kill(world)
        for _ in range(MOST_LOOKS):
            try:
                await world.settle()
            except KilledError:
                world.kubernetes.before_write = lambda: None
                await world.kill_operator()
                continue
            break
        return end_state(world)

    def kill(world: World) -> None:
        if world.kubernetes.writes > writes:
            raise KilledError

    assert run(go(make_world())) == undisturbed(make_world)
