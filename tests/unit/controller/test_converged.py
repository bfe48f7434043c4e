"""A pool that is as it should be costs nothing: no write, no job, no admission; also for an operator that is new."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Self

import pytest

from kvfence.controller import reconciling
from kvfence.kube.errors import Unreachable
from kvfence.kube.kinds import CHILDREN, DEPLOYMENT, EVENT, POOL
from tests.unit.controller.virtual_time import now, run
from tests.unit.controller.world import World

MakeWorld = Callable[..., World]


def proven(world: World) -> tuple[int, int]:
    """Return how many checks were made."""
    return len(world.pairs), len(world.fronts)


def test_looking_at_a_converged_pool_writes_nothing_and_starts_no_job(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(prefill=2, decode=2)

    class Tomorrow(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(UTC) + timedelta(days=1)

    async def go() -> None:
        assert await world.settle() is None
        writes, admissions = world.kubernetes.writes, len(world.told())
        monkeypatch.setattr(reconciling, "datetime", Tomorrow)  # the time alone is no news
        for _ in range(3):
            assert await world.look() is None
            assert world.jobs() == set()
        assert world.kubernetes.wrote_since(writes) == []
        assert len(world.told()) == admissions

    run(go())


def test_an_operator_that_is_new_to_a_converged_pool_writes_nothing_and_tells_nobody_anything(world: World) -> None:
    async def go() -> None:
        await world.settle()
        writes, admissions, pairs = world.kubernetes.writes, len(world.told()), len(world.pairs)
        for count in (2, 3):
            await world.kill_operator()
            assert await world.settle() is None
            assert len(world.fronts) == count, "the front is proven once by each operator"
        assert world.kubernetes.wrote_since(writes) == []
        assert len(world.told()) == admissions
        assert len(world.pairs) == pairs
        assert world.doors() == ["open", "open"]

    run(go())


def test_a_day_of_a_converged_pool_has_no_look_that_nobody_asked_for(world: World) -> None:
    async def go() -> None:
        await world.operate(60)
        assert world.conditions()["Ready"] == ("True", "Serving")
        looks, writes = len(world.looks), world.kubernetes.writes
        assert looks < 25
        await world.operate(24 * 3600)
        assert len(world.looks) == looks + 1, "the one that began it"
        assert world.kubernetes.writes == writes

    run(go())


def test_an_edit_of_an_object_is_taken_back_by_one_write(world: World) -> None:
    async def go() -> None:
        await world.settle()
        writes = world.kubernetes.writes
        policy = world.kubernetes.objects["NetworkPolicy", "ns", "pool-kvfence-engines"]
        policy["spec"]["ingress"] = [{}]
        await world.look()
        await world.settle()
        assert world.kubernetes.wrote_since(writes) == [("apply", "NetworkPolicy", "pool-kvfence-engines")]

    run(go())


def test_an_edit_of_the_service_is_taken_back_at_once_and_tells_no_door_anything(world: World) -> None:
    async def go() -> None:
        await world.settle()
        revision, writes, admissions, proofs = world.served(), world.kubernetes.writes, len(world.told()), proven(world)
        world.kubernetes.objects["Service", "ns", "pool"]["spec"]["selector"]["kvfence.io/revision"] = "another"
        await world.look()
        assert world.served() == revision
        await world.settle()
        assert {kind for _, kind, _ in world.kubernetes.wrote_since(writes)} == {"Service", "InferencePool"}
        assert (len(world.told()), proven(world)) == (admissions, proofs)
        assert world.conditions()["Ready"] == ("True", "Serving")

    run(go())


@pytest.mark.parametrize("kind", CHILDREN, ids=str)
def test_an_object_that_is_deleted_is_made_again(world: World, kind: object) -> None:
    async def go() -> None:
        await world.settle()
        names = {place for place in world.kubernetes.objects if place[0] == str(kind)}
        for place in names:
            world.kubernetes.remove(place)
        await world.settle()
        assert {place for place in world.kubernetes.objects if place[0] == str(kind)} == names
        assert world.conditions()["Ready"] == ("True", "Serving")

    run(go())


def test_a_change_of_replicas_restarts_nothing_and_proves_the_new_engine_alone(world: World) -> None:
    async def go() -> None:
        await world.settle()
        first = {engine.pod: engine.status()["nonces"] for engine in world.engines()}
        pool = world.kubernetes.pool()
        pool["spec"]["roles"][0]["replicas"] = 2
        world.kubernetes.put(pool | {"metadata": pool["metadata"] | {"generation": 2}})
        await world.look()
        await world.settle()
        assert world.doors() == ["open"] * 3
        assert first.items() <= {engine.pod: engine.status()["nonces"] for engine in world.engines()}.items()
        assert len(world.pairs) == 2
        assert {tuple(engine.grant.peers) for engine in world.engines()} == {tuple(world.peers())}
        assert len(world.workers()) == 3
        assert world.kubernetes.pool()["status"]["observedGeneration"] == 2

    run(go())


def test_an_operator_that_cannot_write_tries_again_and_says_what_happened_once(world: World) -> None:
    async def go() -> None:
        world.kubernetes.fail["apply Deployment"] = Unreachable(None, "Unreachable", "cannot apply Deployment")
        await world.operate(1800)
        looks = [one for one in world.looks if one > 600]
        assert len(looks) < 42, "later and later, up to a minute: what it wrote itself comes back as events"
        world.kubernetes.fail.clear()
        await world.operate(600)
        assert world.conditions()["Ready"] == ("True", "Serving")

    run(go())


def test_an_event_that_cannot_be_written_does_not_hold_anything_up(world: World) -> None:
    async def go() -> None:
        world.kubernetes.fail["create Event"] = Unreachable(None, "Unreachable", "cannot create Event")
        await world.settle()
        assert world.conditions()["Ready"] == ("True", "Serving")
        assert world.kubernetes.all(EVENT) == []

    run(go())


def test_jobs_take_no_look_with_them_when_nothing_happens(world: World) -> None:
    """While the checks of a large pool run, no timer asks again and again."""

    async def go() -> None:
        world.during_proof = lambda: None
        world.kubelet()
        while not world.jobs():
            if world.pending:
                after = await world.look()
            world.kubelet()
        began = now()
        assert after is None, "the end of the job tells"
        await asyncio.wait(world.jobs())
        assert now() - began >= 1
        assert world.pending

    run(go())


def test_a_condition_that_somebody_else_adds_is_left_alone_and_costs_nothing(world: World) -> None:
    async def go() -> None:
        await world.settle()
        pool = await world.kubernetes.get(POOL, "ns", "pool")
        assert pool is not None
        theirs = {**pool["status"]["conditions"][0], "type": "example.org/Billed"}
        pool["status"]["conditions"].append(theirs)
        world.kubernetes.put(pool)
        writes = world.kubernetes.writes
        await world.look()
        assert world.kubernetes.wrote_since(writes) == []

    run(go())


def test_what_kubernetes_says_of_pods_that_it_does_not_make_is_told(world: World) -> None:
    async def go() -> None:
        await world.look()
        (name,) = [name for kind, _, name in world.kubernetes.objects if kind == "Deployment" and "-prefill-" in name]
        deployment = await world.kubernetes.get(DEPLOYMENT, "ns", name)
        assert deployment is not None
        failure = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}
        deployment["status"] = {"conditions": [failure]}
        world.kubernetes.put(deployment)
        await world.look()
        assert world.conditions()["RolesReady"] == ("False", "PodsNotCreated")
        assert "exceeded quota" in world.message("RolesReady")

    run(go())
