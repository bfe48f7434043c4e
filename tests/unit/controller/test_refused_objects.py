"""An object that the API server does not take holds up no other; it is said, and it goes on when the refusal ends."""

from __future__ import annotations

import pytest

from kvfence.kube.errors import Contested, Forbidden, Invalid, KubernetesError, Unreachable
from tests.unit.controller.virtual_time import run
from tests.unit.controller.world import World

REFUSALS: dict[str, KubernetesError] = {
    "invalid": Invalid(422, "Invalid", "cannot apply Deployment: spec.template.spec.volumes[0] is wrong"),
    "forbidden": Forbidden(403, "Forbidden", "cannot apply Deployment: exceeded quota: counts"),
    "contested": Contested(None, "Contested", "cannot apply Deployment: a webhook puts it back"),
}


@pytest.mark.parametrize("error", REFUSALS.values(), ids=REFUSALS)
def test_an_object_that_is_refused_is_said_and_the_others_are_there(world: World, error: KubernetesError) -> None:
    world.kubernetes.fail["apply Deployment"] = error

    async def go() -> None:
        after = await world.look()
        assert after is not None
        assert after > 0, "no event will tell that it is taken now"
        kinds = {kind for verb, kind, _ in world.kubernetes.wrote if verb == "apply"}
        assert kinds >= {"ServiceAccount", "ConfigMap", "NetworkPolicy", "ControllerRevision", "Service"}
        assert world.conditions()["Stalled"] == ("True", "ObjectRefused")
        assert world.conditions()["Ready"] == ("False", "ObjectRefused")
        assert error.message in world.message("Stalled")
        assert "And 2 more." in world.message("Stalled"), "there are three Deployments"
        world.kubernetes.fail.clear()
        await world.operate(200)
        assert world.conditions()["Ready"] == ("True", "Serving")
        assert world.conditions()["Stalled"] == ("False", "Progressing")

    run(go())


def test_an_object_that_is_refused_is_tried_again_later_and_later(world: World) -> None:
    world.kubernetes.fail["apply Deployment"] = REFUSALS["forbidden"]

    async def go() -> None:
        await world.operate(1000)
        assert 10 < len(world.looks) < 40
        writes = [kind for _, kind, _ in world.kubernetes.wrote if kind != "Deployment"]
        assert len(writes) < 20, "what is taken is written once"

    run(go())


def test_what_serves_goes_on_although_an_object_is_refused(world: World) -> None:
    async def go() -> None:
        await world.settle()
        served, workers = world.served(), world.workers()
        world.kubernetes.fail["apply NetworkPolicy"] = REFUSALS["forbidden"]
        world.kubernetes.objects["NetworkPolicy", "ns", "pool-kvfence-engines"]["spec"]["ingress"] = [{}]
        world.engines("decode")[0].boot()
        world.pending = True
        await world.settle()
        assert world.conditions()["Ready"] == ("False", "ObjectRefused")
        assert world.doors() == ["open", "open"], "a new boot is proven and let in"
        assert (world.served(), world.workers()) == (served, workers)
        world.kubernetes.fail.clear()
        await world.operate(100)
        assert world.conditions()["Ready"] == ("True", "Serving")
        policy = world.kubernetes.objects["NetworkPolicy", "ns", "pool-kvfence-engines"]
        assert policy["spec"]["ingress"] != [{}]

    run(go())


def test_nobody_is_let_in_to_a_pool_whose_network_policy_is_refused(world: World) -> None:
    world.kubernetes.fail["apply NetworkPolicy"] = REFUSALS["forbidden"]

    async def go() -> None:
        await world.operate(300)
        assert len(world.doors()) == 2
        assert world.told() == []
        assert (world.served(), world.workers()) == ("none", [])
        world.kubernetes.fail.clear()
        await world.operate(100)
        assert world.conditions()["Ready"] == ("True", "Serving")

    run(go())


def test_an_api_server_that_does_not_answer_has_refused_nothing(world: World) -> None:
    world.kubernetes.fail["apply Deployment"] = Unreachable(None, "Unreachable", "cannot apply Deployment")

    async def go() -> None:
        with pytest.raises(Unreachable):
            await world.look()
        assert world.conditions() == {}

    run(go())
