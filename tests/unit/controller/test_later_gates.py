"""A gate that is raised while a pool serves keeps new boots out, and takes nothing from who is served."""

from __future__ import annotations

from kvfence.kube.kinds import POOL
from tests.unit.controller.virtual_time import run
from tests.unit.controller.world import World


def test_a_pool_that_is_told_to_insist_on_what_does_not_fit_serves_on_and_goes_on_saying_how_much(
    world: World,
) -> None:
    async def go() -> None:
        await world.settle()
        before = (world.models(), world.workers(), world.served(), world.doors())
        assert [model["max_model_len"] for model in before[0]] == [1003]
        (pool,) = world.kubernetes.all(POOL)
        pool["spec"]["contextLength"]["policy"] = "RequireFit"
        pool["metadata"]["generation"] += 1
        world.kubernetes.put(pool)
        await world.look()
        await world.settle()
        assert world.conditions()["ContextFits"] == ("False", "RequestedContextDoesNotFit")
        assert world.conditions()["TrafficAdmitted"] == ("True", "Admitted")
        assert (world.models(), world.workers(), world.served(), world.doors()) == before

    run(go())
