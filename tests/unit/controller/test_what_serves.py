"""Whether a pool serves is read off its own Service: a status can be wiped, restored or edited apart from what runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kvfence.kube.client import Object
from kvfence.kube.kinds import POD
from tests.unit.controller.virtual_time import run
from tests.unit.controller.world import World, pool_object

MakeWorld = Callable[..., World]


def served_when(world: World) -> list[list[str]]:
    """Return how the doors stood each time that the Service was led to a revision; grows as that happens."""
    seen: list[list[str]] = []
    changed = world.kubernetes.on_change

    def watch(obj: Object) -> None:
        if obj["kind"] == "Service" and obj["spec"]["selector"]["kvfence.io/revision"] != "none":
            seen.append(world.doors())
        changed(obj)

    world.kubernetes.on_change = watch
    return seen


def without_times(status: Any) -> Any:
    """Return a status without what depends on when it was written."""
    if isinstance(status, dict):
        times = {"lastTransitionTime", "measurementTime"}
        return {name: without_times(value) for name, value in status.items() if name not in times}
    return [without_times(one) for one in status] if isinstance(status, list) else status


@pytest.mark.parametrize("status", [{}, {"currentRevision": "lost"}, {"currentRevision": 7}], ids=str)
def test_a_status_that_is_wiped_or_edited_is_written_again_and_changes_nothing_else(
    world: World, status: dict[str, Any]
) -> None:
    async def go() -> None:
        await world.settle()
        before, told, pairs = without_times(world.kubernetes.pool()["status"]), len(world.told()), len(world.pairs)
        writes = world.kubernetes.writes
        seen = served_when(world)
        for _ in range(2):
            world.kubernetes.put(world.kubernetes.pool() | {"status": status})
            await world.settle()
            assert without_times(world.kubernetes.pool()["status"]) == before
            await world.kill_operator()  # and the same for one that is new
        assert {kind for _, kind, _ in world.kubernetes.wrote_since(writes)} <= {"InferencePool", "Event"}
        assert (len(world.told()), len(world.pairs), seen) == (told, pairs, [])

    run(go())


def test_a_status_that_is_restored_onto_a_new_pool_opens_nothing_and_all_is_proven_anew(make_world: MakeWorld) -> None:
    world = make_world(prefill=2)

    async def go() -> None:
        await world.settle()
        status = world.kubernetes.pool()["status"]
        world.kubernetes.remove(("InferencePool", "ns", "pool"))
        world.kubelet()
        assert world.engines() == []
        seen, proofs = served_when(world), (len(world.pairs), len(world.fronts))
        world.kubernetes.put(pool_object(prefill=2, uid="pool-uid-2") | {"status": status})
        await world.look()
        assert world.served() == "none"
        assert world.conditions()["TrafficAdmitted"][0] == "False"
        assert world.kubernetes.pool()["status"].get("currentRevision") is None
        await world.settle()
        assert seen == [["open"] * 3], "once all doors are open, and not before"
        assert (len(world.pairs), len(world.fronts)) == (proofs[0] + 2, proofs[1] + 1)
        assert world.conditions()["Ready"] == ("True", "Serving")

    run(go())


@pytest.mark.parametrize("operator", ["of before", "that is new"])
def test_a_spec_that_is_changed_and_changed_back_while_engines_leave_is_proven_anew(
    world: World, operator: str
) -> None:
    async def go() -> None:
        await world.settle()
        first = world.served()
        world.ask_for(lambda spec: spec["roles"][0].update(args=["--max-total-tokens=1000"]))
        await world.look()
        assert world.served() == "none"
        for pod in world.kubernetes.all(POD):
            pod["metadata"]["deletionTimestamp"] = "2026-11-30T00:00:00Z"
        world.ask_for(lambda spec: spec["roles"][0].pop("args"))
        if operator == "that is new":
            await world.kill_operator()
        for _ in range(2):
            await world.look()
        assert world.served() == "none"
        assert world.conditions()["RolesReady"] == ("False", "OldRevisionLeaving")
        assert not [place for place in world.kubernetes.objects if place[0] == "Deployment"]
        seen, proofs = served_when(world), (len(world.pairs), len(world.fronts))
        world.wire.engines.clear()
        for pod in list(world.kubernetes.all(POD)):
            world.kubernetes.remove(("Pod", "ns", pod["metadata"]["name"]))
        await world.settle()
        assert world.served() == first
        assert seen == [["open", "open"]]
        assert (len(world.pairs), len(world.fronts)) == (proofs[0] + 1, proofs[1] + 1)

    run(go())


def test_a_status_that_says_that_another_revision_serves_lets_nobody_in_early(world: World) -> None:
    """Somebody who may write the status says so of a pool that is coming up."""
    world.held.add("decode")

    async def go() -> None:
        await world.settle()
        pool = world.kubernetes.pool()
        status = pool["status"] | {"currentRevision": pool["status"]["updateRevision"]}
        world.kubernetes.put(pool | {"status": status})
        await world.settle()
        assert (world.served(), world.workers(), world.told()) == ("none", [], [])

    run(go())
