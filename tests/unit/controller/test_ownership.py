"""What is not the pool's own is never touched; what is gone is let go."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from kvfence.controller.pool_objects import spec_of
from kvfence.domain.revisions import revision_hash
from kvfence.kube.errors import NamespaceTerminating
from kvfence.kube.kinds import CHILDREN
from tests.unit.controller.virtual_time import now, run
from tests.unit.controller.world import World, pool_object

MakeWorld = Callable[..., World]
HASH = revision_hash(spec_of(pool_object()))
NAMES = [
    ("apps/v1", "Deployment", f"pool-prefill-{HASH}"),
    ("apps/v1", "Deployment", f"pool-router-{HASH}"),
    ("apps/v1", "ControllerRevision", f"pool-{HASH}"),
    ("v1", "ConfigMap", "pool-kvfence-keys"),
    ("v1", "ConfigMap", f"pool-router-{HASH}"),
    ("v1", "Service", "pool"),
    ("v1", "ServiceAccount", "pool-kvfence"),
    ("networking.k8s.io/v1", "NetworkPolicy", "pool-kvfence-engines"),
]


def stranger(api_version: str, kind: str, name: str, **metadata: Any) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "Other", "name": "other", "uid": "other-uid", "controller": True}
    made = {"name": name, "namespace": "ns", "ownerReferences": [owner], **metadata}
    return {"apiVersion": api_version, "kind": kind, "metadata": made, "spec": {"replicas": 0}}


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize(("api_version", "kind", "name"), NAMES)
def test_a_name_that_a_stranger_has_is_left_to_them_and_named(
    world: World, api_version: str, kind: str, name: str, labelled: bool
) -> None:
    labels = {"labels": {"kvfence.io/pool": "pool"}} if labelled else {}
    theirs = world.kubernetes.put(stranger(api_version, kind, name, **labels))

    async def go() -> None:
        await world.look()
        after = await world.look()
        assert after is not None
        assert after > 0
        assert world.kubernetes.objects[kind, "ns", name] == theirs
        assert not [one for one in world.kubernetes.wrote if one[1:] == (kind, name)]
        assert world.conditions()["Stalled"] == ("True", "NameTaken")
        assert f"{kind} {name}" in world.message("Stalled")
        assert world.told() == []
        assert world.jobs() == set()

    run(go())


def test_a_name_that_comes_free_is_used(world: World) -> None:
    world.kubernetes.put(stranger("v1", "Service", "pool"))

    async def go() -> None:
        await world.operate(600)
        assert world.conditions()["Ready"] == ("False", "NameTaken")
        assert len(world.looks) < 40
        assert "open" not in world.doors()
        world.kubernetes.remove(("Service", "ns", "pool"))
        await world.operate(200)
        assert world.conditions()["Ready"] == ("True", "Serving")

    run(go())


def test_a_stranger_that_comes_while_a_check_runs_makes_no_hot_loop(world: World) -> None:
    async def go() -> None:
        def intrude() -> None:
            world.kubernetes.remove(("Service", "ns", "pool"))
            world.kubernetes.put(stranger("v1", "Service", "pool"))
            world.during_proof = lambda: None

        world.during_proof, world.proof_seconds = intrude, 600.0
        await world.operate(500)
        assert world.jobs()
        assert world.conditions()["Stalled"] == ("True", "NameTaken")
        assert len(world.looks) < 20

    run(go())


def test_objects_of_an_earlier_pool_of_the_same_name_are_not_adopted(world: World) -> None:
    async def go() -> None:
        await world.settle()
        old = {place: json.dumps(one) for place, one in world.kubernetes.objects.items() if place[0] != "InferencePool"}
        asked, told = len(world.wire.asked), len(world.told())
        new = pool_object(uid="pool-uid-2")
        world.kubernetes.objects["InferencePool", "ns", "pool"] = new | {"metadata": new["metadata"]}
        await world.look()
        writes = [one for one in world.kubernetes.wrote if one[0] in {"apply", "delete", "annotate"}]
        assert [json.dumps(world.kubernetes.objects[place]) for place in old] == list(old.values())
        assert world.conditions()["Stalled"] == ("True", "NameTaken")
        assert len(world.told()) == told
        assert len(world.wire.asked) == asked, "engines of another pool are not even asked"
        assert world.kubernetes.pool()["status"].get("currentRevision") is None
        assert not [one for one in writes if one[0] == "delete"]

    run(go())


def test_a_pool_that_is_made_again_starts_from_nothing_once_the_old_one_is_cleared_away(world: World) -> None:
    async def go() -> None:
        await world.settle()
        world.kubernetes.remove(("InferencePool", "ns", "pool"))
        world.kubernetes.put(pool_object(uid="pool-uid-2"))
        await world.settle()
        assert world.conditions()["Ready"] == ("True", "Serving")
        assert {said["pool"] for engine in world.engines() for said in engine.told} == {"pool-uid-2"}
        owners = {
            one["metadata"]["ownerReferences"][0]["uid"] for kind in CHILDREN for one in world.kubernetes.all(kind)
        }
        assert owners == {"pool-uid-2"}
        assert len(world.pairs) == 2

    run(go())


@pytest.mark.parametrize("how", ["gone", "being deleted", "made again"])
def test_a_pool_that_goes_takes_its_job_with_it(world: World, how: str) -> None:
    async def go() -> None:
        world.kubelet()
        while not world.jobs():
            if world.pending:
                await world.look()
            world.kubelet()
        (job,) = world.jobs()
        await asyncio.sleep(0.5)
        if how == "being deleted":
            world.kubernetes.pool()["metadata"]["deletionTimestamp"] = "2026-11-30T00:00:00Z"
        else:
            world.kubernetes.remove(("InferencePool", "ns", "pool"))
        if how == "made again":
            world.kubernetes.put(pool_object(uid="pool-uid-2"))
        writes, began = world.kubernetes.writes, now()
        await world.look()
        await asyncio.wait({job})
        assert job.cancelled()
        assert now() == began or how == "made again"
        if how != "made again":
            assert world.kubernetes.writes == writes
            assert await world.look() is None
            assert not world.reconciler._memories

    run(go())


def test_an_operator_that_ends_takes_its_jobs_with_it(world: World) -> None:
    async def go() -> None:
        world.kubelet()
        while not world.jobs():
            await world.look()
            world.kubelet()
        (job,) = world.jobs()
        await asyncio.sleep(0.5)
        await world.reconciler.stop()
        assert job.cancelled()
        told = len(world.told())
        await asyncio.sleep(100)
        assert len(world.told()) == told

    run(go())


def test_an_object_of_the_pool_that_lost_its_label_gets_it_back(world: World) -> None:
    async def go() -> None:
        await world.settle()
        deployment = world.kubernetes.objects["Deployment", "ns", f"pool-router-{HASH}"]
        del deployment["metadata"]["labels"]["kvfence.io/pool"]
        world.pending = True
        await world.settle()
        assert world.conditions()["Ready"] == ("True", "Serving")
        found = world.kubernetes.objects["Deployment", "ns", f"pool-router-{HASH}"]
        assert found["metadata"]["labels"]["kvfence.io/pool"] == "pool"

    run(go())


def test_a_pool_that_cannot_be_read_says_so_once_and_what_runs_is_left(world: World) -> None:
    async def go() -> None:
        await world.settle()
        before = {place for place in world.kubernetes.objects if place[0] != "Event"}
        spec = world.kubernetes.pool()["spec"]
        spec["fromTheFuture"] = spec["engine"].pop("sglang")
        writes = world.kubernetes.writes
        for _ in range(3):
            assert await world.look() is None
        assert world.kubernetes.wrote_since(writes) == [("apply_status", "InferencePool", "pool")]
        assert world.conditions()["Stalled"] == ("True", "PoolUnreadable")
        assert "spec.engine.sglang" in world.message("Ready")
        assert {place for place in world.kubernetes.objects if place[0] != "Event"} == before
        assert world.kubernetes.pool()["status"]["currentRevision"] == HASH
        assert world.doors() == ["open", "open"]

    run(go())


def test_a_namespace_that_is_being_deleted_is_no_error(world: World) -> None:
    error = NamespaceTerminating(403, "NamespaceTerminating", "its namespace is being deleted")
    world.kubernetes.fail["apply ServiceAccount"] = error
    assert run(world.look()) is None


def test_a_refused_change_on_top_of_a_lost_revision_counts_no_revisions_up(world: World) -> None:
    async def go() -> None:
        await world.settle()
        pool = world.kubernetes.pool()
        pool["spec"]["roles"][0]["args"] = ["--max-total-tokens=1000"]
        await world.look()
        await world.settle()  # another revision comes up, and serves
        world.kubernetes.pool()["status"]["currentRevision"] = "lost"
        pool["spec"]["engine"]["sglang"]["version"] = "0.5.19"
        await world.look()
        writes = world.kubernetes.writes
        for _ in range(3):
            await world.look()
        assert world.kubernetes.wrote_since(writes) == []

    run(go())


def test_a_revision_that_cannot_be_read_is_said_in_the_status(world: World) -> None:
    async def go() -> None:
        await world.settle()
        world.kubernetes.objects["ControllerRevision", "ns", f"pool-{HASH}"]["data"]["format"] = 2
        world.pending = True
        await world.settle()
        assert world.conditions()["Stalled"] == ("True", "PoolUnreadable")
        assert "format 2" in world.message("Stalled")
        assert world.doors() == ["open", "open"]

    run(go())
