"""An operator that hears no door of a pool that serves takes nobody away; the kubelet asks the same doors."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.controller.fake_engines import FakeEngine
from tests.unit.controller.virtual_time import run
from tests.unit.controller.world import World

MakeWorld = Callable[..., World]
SEEN_BY_USERS = {"Service", "ConfigMap", "Deployment", "NetworkPolicy", "Pod"}


def silence(world: World, *, silent: bool) -> None:
    for engine in world.engines():
        engine.silent = silent
    world.pending = True


@pytest.mark.parametrize("operator", ["of before", "that is new"])
def test_an_operator_that_hears_no_door_of_a_pool_that_serves_leaves_it_as_it_is(world: World, operator: str) -> None:
    async def go() -> None:
        await world.settle()
        served, workers, models = world.served(), world.workers(), world.models()
        writes, told, pairs = world.kubernetes.writes, len(world.told()), len(world.pairs)
        silence(world, silent=True)
        if operator == "that is new":
            await world.kill_operator()
        await world.settle()
        assert (world.served(), world.workers(), world.models()) == (served, workers, models)
        assert not SEEN_BY_USERS & {kind for _, kind, _ in world.kubernetes.wrote_since(writes)}
        assert world.conditions()["RolesReady"] == ("False", "EngineNotAnswering")
        assert world.conditions()["TrafficAdmitted"] == ("True", "Admitted")
        silence(world, silent=False)
        await world.operate(200)
        assert world.conditions()["Ready"] == ("True", "Serving")
        assert (len(world.told()), len(world.pairs)) == (told, pairs)

    run(go())


def test_one_door_that_is_not_heard_takes_its_engine_off_no_list(make_world: MakeWorld) -> None:
    world = make_world(prefill=2)

    async def go() -> None:
        await world.settle()
        workers = world.workers()
        world.engines("prefill")[0].silent = True
        for _ in range(3):
            await world.look()
        assert world.workers() == workers
        assert len(workers) == 3

    run(go())


@pytest.mark.parametrize("how", ["not ready", "starting", "closed", "another pod"])
def test_an_engine_that_is_known_not_to_serve_is_off_the_list(make_world: MakeWorld, how: str) -> None:
    """Not being heard is no such knowledge; these are."""
    world = make_world(prefill=2)

    async def go() -> None:
        await world.settle()
        ip, engine = next((ip, one) for ip, one in world.wire.engines.items() if one.mode == "prefill")
        uid = engine.pod
        match how:
            case "not ready":
                engine.silent = engine.unready = True
                world.kubelet()
            case "starting":
                engine.starting = True
            case "closed":
                engine.boot()
            case _:
                other = FakeEngine("pool-uid-1", "another-pod", "prefill", world.keys_folder, 1024)
                world.made.append(other)
                world.wire.engines[ip] = other
        await world.look()
        assert len(world.workers()) == 2
        assert uid not in str(world.workers())

    run(go())


def test_a_door_that_is_not_heard_lets_no_pool_come_up(world: World) -> None:
    async def go() -> None:
        world.held.add("decode")
        await world.settle()
        world.held.clear()
        world.kubelet()
        (decode,) = world.engines("decode")
        decode.silent = True
        world.pending = True
        await world.settle()
        assert (world.served(), world.workers(), world.told()) == ("none", [], [])

    run(go())
