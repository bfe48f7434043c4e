"""A spec that may not run changes nothing of what runs, whatever else it says; and what runs is not lost on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from packaging.version import Version

from kvfence.domain.advisories import Affected
from kvfence.kube.client import Object
from kvfence.kube.kinds import CHILDREN, POD
from tests.unit.controller.virtual_time import run
from tests.unit.controller.world import World
from tests.unit.domain.known_faults import advisory

MakeWorld = Callable[..., World]
Change = Callable[[Any], object]

CHANGES: dict[str, Change] = {
    "nothing more": lambda _: None,
    "a role with another name": lambda spec: spec["roles"][0].update(name="renamed"),
    "other replicas": lambda spec: spec["roles"][1].update(replicas=5),
    "another image for the router": lambda spec: spec.update(router={"image": "example.com/router:2"}),
    "more routers": lambda spec: spec.update(router={"replicas": 3}),
    "another name for the model": lambda spec: spec["model"].update(servedName="renamed"),
    "another image for the engines": lambda spec: spec["engine"]["sglang"].update(image="example.com/sglang:1"),
}


def running(world: World) -> str:
    """Return all that runs, as it stands in the API server."""
    found = [one for kind in (*CHILDREN, POD) for one in world.kubernetes.all(kind)]
    return json.dumps(found, sort_keys=True, indent=1)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_spec_that_is_refused_changes_nothing_of_what_runs(world: World, change: Change) -> None:
    async def go() -> None:
        await world.settle()
        before, told, writes = running(world), len(world.told()), world.kubernetes.writes
        world.ask_for(lambda spec: (change(spec), spec["engine"]["sglang"].update(version="0.5.19")))
        for _ in range(2):
            await world.settle()
            assert world.conditions()["EngineAllowed"] == ("False", "VersionTooOld")
            assert world.conditions()["TrafficAdmitted"] == ("True", "Admitted")
            assert running(world) == before
            await world.kill_operator()  # and the same for one that is new
        assert {kind for _, kind, _ in world.kubernetes.wrote_since(writes)} <= {"InferencePool", "Event"}
        assert len(world.told()) == told

    run(go())


def test_a_spec_that_an_advisory_refuses_changes_nothing_of_what_runs(world: World) -> None:
    faulty = advisory(affected=(Affected("sglang", (), (Version("0.5.24"),)),))

    async def go() -> None:
        world.watchlists._advisories = (faulty,)
        await world.settle()
        before = running(world)
        world.ask_for(lambda spec: spec["engine"]["sglang"].update(version="0.5.24", image="example.com/sglang:2"))
        for _ in range(2):
            await world.settle()
            assert world.conditions()["EngineAllowed"] == ("False", "AdvisoryApplies")
            assert world.conditions()["TrafficAdmitted"] == ("True", "Admitted")
            assert running(world) == before
            await world.kill_operator()

    run(go())


def test_a_spec_that_is_right_again_is_brought_about(world: World) -> None:
    def wrong(spec: Any) -> None:
        spec["roles"][0]["replicas"] = 2
        spec["engine"]["sglang"]["version"] = "0.5.19"

    async def go() -> None:
        await world.settle()
        first = world.served()
        world.ask_for(wrong)
        await world.settle()
        assert len(world.engines()) == 2
        world.ask_for(lambda spec: spec["engine"]["sglang"].update(version="0.5.23"))
        await world.settle()
        assert len(world.engines()) == 3
        assert world.served() == first
        assert world.conditions()["Ready"] == ("True", "Serving")

    run(go())


def test_replicas_that_somebody_scaled_to_by_hand_stay_while_the_spec_is_refused(world: World) -> None:
    async def go() -> None:
        await world.settle()
        world.ask_for(lambda spec: spec["engine"]["sglang"].update(version="0.5.19"))
        await world.settle()
        name = next(name for kind, _, name in world.kubernetes.objects if kind == "Deployment" and "-prefill-" in name)
        world.kubernetes.objects["Deployment", "ns", name]["spec"]["replicas"] = 2
        world.pending = True
        await world.settle()
        assert len(world.engines("prefill")) == 2
        assert world.doors() == ["open", "open", "closed"], "and nobody new is let in"
        assert len(world.workers()) == 2

    run(go())


def test_what_is_deleted_while_the_spec_is_refused_is_made_again(world: World) -> None:
    async def go() -> None:
        await world.settle()
        world.ask_for(lambda spec: spec["engine"]["sglang"].update(version="0.5.19"))
        await world.settle()
        names = {place for place in world.kubernetes.objects if place[0] in {"NetworkPolicy", "Deployment"}}
        for place in names:
            world.kubernetes.remove(place)
        await world.look()
        assert names <= world.kubernetes.objects.keys()

    run(go())


def test_what_serves_is_not_lost_with_its_revision_while_a_pod_is_leaving(make_world: MakeWorld) -> None:
    """The revision is to be seen by its ControllerRevision alone; the Service says that it runs, too."""
    world = make_world(prefill=2)

    async def go() -> None:
        await world.settle()
        pod = next(one for one in world.kubernetes.all(POD) if "-prefill-" in one["metadata"]["name"])
        pod["metadata"]["deletionTimestamp"] = "2026-11-30T00:00:00Z"
        (lost,) = [place for place in world.kubernetes.objects if place[0] == "ControllerRevision"]
        deployments = [place for place in world.kubernetes.objects if place[0] == "Deployment"]
        world.kubernetes.remove(lost)
        await world.look()
        assert lost in world.kubernetes.objects, "made again"
        assert [place for place in world.kubernetes.objects if place[0] == "Deployment"] == deployments
        assert world.served() != "none"
        assert len(world.workers()) == 2

    run(go())


def stray(world: World, role: str | None) -> Object:
    """Return a pod with the labels of an engine of the pool, made by somebody else."""
    engine = next(one for one in world.kubernetes.all(POD) if "-prefill-" in one["metadata"]["name"])
    labels = {**engine["metadata"]["labels"], "kvfence.io/role": role}
    labels = {name: value for name, value in labels.items() if value is not None}
    status = {**engine["status"], "podIP": "10.9.9.9"}
    return engine | {
        "metadata": {"name": "stray", "namespace": "ns", "uid": "stray-uid", "labels": labels},
        "status": status,
    }


def test_a_pod_with_a_role_that_the_revision_has_not_is_none_of_its_engines(world: World) -> None:
    async def go() -> None:
        await world.settle()
        writes = world.kubernetes.writes
        for role in ("another", "", None):
            world.kubernetes.put(stray(world, role))
            assert await world.look() is None
        assert world.kubernetes.wrote_since(writes) == []
        assert not [url for url in world.wire.asked if "10.9.9.9" in url]
        assert world.conditions()["Ready"] == ("True", "Serving")

    run(go())
