"""Whoever answers at an engine's address is that engine, or is told nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.controller.gathering import facts_of
from kvfence.controller.jobs import Jobs, Subject
from kvfence.controller.memory import PoolMemory
from kvfence.domain.decisions import Admit, ProveFronts
from kvfence.domain.engines import DoorState, Engine, Facts
from kvfence.domain.verdicts import Outcome
from kvfence.engine.admission import Signer
from kvfence.engine.door import DoorClient, DoorStatus, Unanswered
from kvfence.engine.server_info import ServerFacts
from kvfence.verify import front_door, pair_suite
from tests.unit.controller.fake_engines import FakeEngine
from tests.unit.controller.virtual_time import run
from tests.unit.controller.world import World, pool_object
from tests.unit.domain.pools_of_engines import boot, pod, router

ENGINE = Engine(pod("prefill"), RoleType.PREFILL, 8998, boot=replace(boot("prefill-0", 1024), sglang="0.5.23"))
SAID = ServerFacts(
    version="0.5.23",
    kv_checksum=True,
    disaggregation_mode="prefill",
    context_length=4096,
    page_size=1,
    max_input_tokens=1018,
    reserved_decode_tokens=512,
    allow_auto_truncate=False,
    served_models=("tiny",),
)


def test_a_server_that_is_what_it_should_be_is_taken() -> None:
    facts = facts_of(SAID, ENGINE, "tiny")
    assert isinstance(facts, Facts)
    assert facts.kv_checksum is True


@pytest.mark.parametrize("mode", ["decode", "null", None])
def test_a_server_of_another_role_is_not_taken(mode: str | None) -> None:
    said = facts_of(replace(SAID, disaggregation_mode=mode), ENGINE, "tiny")
    assert said == "its server does not say that it is a prefill server"


def test_a_server_of_another_model_is_not_taken() -> None:
    said = facts_of(replace(SAID, served_models=("other",)), ENGINE, "tiny")
    assert said == "its server does not serve the pool's model under its name"


def test_a_server_that_runs_another_release_than_its_door_says_is_not_taken() -> None:
    said = facts_of(replace(SAID, version="0.5.24"), ENGINE, "tiny")
    assert said == "its server and its door name different releases of SGLang"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    monkeypatch.setattr(pair_suite, "prove_pair", made.prove_pair)
    monkeypatch.setattr(front_door, "prove_front", made.prove_front)
    made.kubernetes.put(pool_object())
    return made


@pytest.mark.parametrize(("pool", "uid"), [("pool-uid-1", "pod-uid-of-another"), ("pool-uid-of-another", "")])
def test_the_door_of_another_pod_at_the_same_address_is_told_nothing(world: World, pool: str, uid: str) -> None:
    world.held.add("decode")

    async def go() -> None:
        await world.settle()
        world.held.clear()
        world.kubelet()
        ip, there = next((ip, engine) for ip, engine in world.wire.engines.items() if engine.mode == "decode")
        other = FakeEngine(pool, uid or there.pod, "decode", world.keys_folder, 4096)
        world.made.append(other)
        world.wire.engines[ip] = other
        world.pending = True
        await world.settle()
        assert world.told() == []
        assert "what answers at its address is the door of another pod" in world.message("RolesReady")

    try:
        run(go())
    finally:
        world.close()


class Door(DoorClient):
    """The door of whichever boot answers now; notes what it is told."""

    def __init__(self, nonces: tuple[str, ...]) -> None:
        super().__init__()
        self.nonces = nonces
        self.told: list[object] = []

    async def status(self, host: str) -> DoorStatus:
        uid = ENGINE.pod.uid
        return DoorStatus("0.1.0", "pool-uid", uid, DoorState.CLOSED, 0, 0, (), True, self.nonces, "0.5.23", (), None)

    async def admit(self, host: str, body: object) -> Unanswered:
        self.told.append(body)
        return Unanswered("of this test")


@pytest.mark.parametrize("is_the_same", [True, False])
def test_a_boot_that_came_after_the_decision_is_not_told_to_open(*, is_the_same: bool) -> None:
    assert ENGINE.boot is not None
    door = Door(ENGINE.boot.nonces if is_the_same else ("n-http-2", "n-rank-2"))
    subject = Subject("pool-uid", "revision", "tiny", 4096, ("10.0.0.1:8998",))
    jobs = Jobs(door, Signer.from_seed(bytes(32)))
    run(jobs.do(Admit((ENGINE,), 1000), subject, PoolMemory("pool-uid")))
    assert len(door.told) == is_the_same


def test_a_front_is_not_judged_while_a_door_behind_it_has_not_taken_its_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ENGINE.boot is not None
    asked: list[object] = []

    async def prove_front(*arguments: object) -> None:
        asked.append(arguments)

    monkeypatch.setattr(front_door, "prove_front", prove_front)
    subject, memory = Subject("pool-uid", "revision", "tiny", 4096, ()), PoolMemory("pool-uid")
    jobs = Jobs(Door(ENGINE.boot.nonces), Signer.from_seed(bytes(32)))
    run(jobs.do(ProveFronts((ENGINE,), (router(),), 1000), subject, memory))
    ((verdict,),) = memory.fronts.values()
    assert verdict.outcome is Outcome.NOT_JUDGED
    assert "its door does not answer (of this test)" in verdict.message
    assert asked == []
