"""A front is proven for each router pod that users reach, also while the pool serves; one that fails cuts them off."""

from __future__ import annotations

import pytest

from kvfence.domain.verdicts import Outcome
from kvfence.kube.kinds import POD
from tests.unit.controller.virtual_time import run
from tests.unit.controller.world import World


def replace_router(world: World) -> None:
    """Have the router's pod be another one."""
    (name,) = [p["metadata"]["name"] for p in world.kubernetes.all(POD) if "-router-" in p["metadata"]["name"]]
    world.kubernetes.remove(("Pod", "ns", name))
    world.kubelet()


def test_a_new_router_pod_of_a_pool_that_serves_is_proven_and_tells_no_door_anything(world: World) -> None:
    async def go() -> None:
        await world.settle()
        told, pairs = len(world.told()), len(world.pairs)
        served, workers = world.served(), world.workers()
        replace_router(world)
        await world.settle()
        assert len(world.fronts) == 2
        assert (len(world.told()), len(world.pairs)) == (told, pairs)
        assert (world.served(), world.workers()) == (served, workers)
        assert world.conditions()["Ready"] == ("True", "Serving")
        world.pending = True
        await world.settle()
        assert len(world.fronts) == 2, "once"

    run(go())


@pytest.mark.parametrize("operator", ["of before", "that is new"])
def test_a_front_that_fails_cuts_users_off_and_the_next_one_is_tried(world: World, operator: str) -> None:
    async def go() -> None:
        await world.settle()
        world.front_outcome = lambda _: Outcome.FAILED
        if operator == "that is new":
            await world.kill_operator()
        else:
            replace_router(world)
        await world.settle()
        assert (world.served(), world.workers(), world.models()) == ("none", [], [])
        assert world.conditions()["IsolationVerified"] == ("False", "CheckFailed")
        assert world.conditions()["Ready"] == ("False", "CheckFailed")
        assert world.conditions()["Stalled"] == ("True", "CheckFailed")
        assert world.kubernetes.pool()["status"].get("currentRevision") is None
        fronts = len(world.fronts)
        await world.operate(500)
        assert len(world.fronts) == fronts, "it is not tried again"
        world.front_outcome = lambda _: Outcome.PASSED
        replace_router(world)
        await world.operate(100)
        assert len(world.fronts) == fronts + 1
        assert world.conditions()["Ready"] == ("True", "Serving")
        assert world.doors() == ["open", "open"]

    run(go())


def test_a_front_that_could_not_be_judged_while_it_serves_is_asked_again_and_cuts_nobody_off(world: World) -> None:
    async def go() -> None:
        await world.settle()
        served, workers = world.served(), world.workers()
        world.front_outcome = lambda _: Outcome.NOT_JUDGED
        replace_router(world)
        await world.operate(200)
        assert (world.served(), world.workers()) == (served, workers)
        assert world.conditions()["IsolationVerified"] == ("Unknown", "CheckNotJudged")
        assert 5 < len(world.fronts) < 15
        world.front_outcome = lambda _: Outcome.PASSED
        await world.operate(100)
        assert world.conditions()["Ready"] == ("True", "Serving")

    run(go())
