"""What was true of one boot of an engine is not true of the next; and what does not work is not tried all the time."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable

import pytest

from kvfence.domain.verdicts import Outcome
from tests.unit.controller.fake_engines import FakeEngine
from tests.unit.controller.virtual_time import run
from tests.unit.controller.world import World

MakeWorld = Callable[..., World]
WHILE = 500
"""Seconds: long enough that the longest pause comes several times."""


def gaps(times: list[float]) -> list[float]:
    return [after - before for before, after in itertools.pairwise(times)]


def test_an_engine_that_starts_anew_is_proven_again_and_the_others_are_left_alone(make_world: MakeWorld) -> None:
    world = make_world(prefill=2)

    async def go() -> None:
        await world.settle()
        first, other = world.engines("prefill")
        (decode,) = world.engines("decode")
        untouched = [len(engine.told) for engine in (other, decode)]
        proofs, epoch = len(world.pairs), first.grant.epoch
        assert epoch == 3
        first.boot()
        assert first.door == "closed"
        world.pending = True  # the kubelet reports the restart
        await world.settle()
        assert world.doors() == ["open"] * 3
        # The other leg is told the key of the new boot, and nothing else.
        assert [len(engine.told) for engine in (other, decode)] == [untouched[0], untouched[1] + 1]
        assert decode.told[-1] | {"epoch": 0, "expires": 0, "partners": []} == decode.told[-2] | {
            "epoch": 0,
            "expires": 0,
            "partners": [],
        }
        assert {one["key"] for one in decode.told[-1]["partners"]} == {first.status()["key"], other.status()["key"]}
        assert len(world.pairs) == proofs + 1
        assert [said["door"] for said in first.told[-2:]] == ["canary", "open"]
        assert world.conditions()["Ready"] == ("True", "Serving")

    run(go())


def test_what_starts_anew_is_off_the_routers_list_until_it_is_proven(make_world: MakeWorld) -> None:
    world = make_world(prefill=2)

    async def go() -> None:
        await world.settle()
        listed = len(world.workers())
        world.engines("prefill")[0].boot()
        await world.look()
        assert len(world.workers()) == listed - 1
        await world.settle()
        assert len(world.workers()) == listed

    run(go())


@pytest.mark.parametrize("mode", ["prefill", "decode"])
def test_a_boot_that_follows_during_the_checks_is_told_nothing_that_was_decided_about_the_one_before(
    world: World, mode: str
) -> None:
    async def go() -> None:
        def once() -> None:
            world.during_proof = lambda: None
            (engine,) = world.engines(mode)
            engine.boot()
            engine.told.clear()

        world.during_proof = once
        await world.operate(60)
        (engine,) = world.engines(mode)
        mine = engine.status()["nonces"]
        assert [said["nonces"] for said in engine.told] == [mine] * len(engine.told)
        assert [said["door"] for said in engine.told] == ["canary", "canary", "open"], "it went through all of it"
        assert world.doors() == ["open", "open"]
        assert len(world.pairs) == 2

    run(go())


def test_an_engine_that_starts_anew_between_question_and_admission_refuses_what_was_not_meant_for_it(
    world: World,
) -> None:
    async def go() -> None:
        while not world.engines("decode"):
            await world.look()
            world.kubelet()
        (engine,) = world.engines("decode")
        engine.before_admission.append("boot")
        await world.operate(WHILE)
        assert engine.told[0]["nonces"] != engine.status()["nonces"]
        assert world.doors() == ["open", "open"]

    run(go())


def test_a_door_that_refuses_is_named_and_asked_again_later_and_later(world: World) -> None:
    def refuse() -> None:
        for engine in world.engines("decode"):
            engine.refuses = "the boot has its reasons"

    world.front_outcome = lambda _: (refuse(), Outcome.PASSED)[1]  # type: ignore[func-returns-value]

    async def go() -> None:
        await world.operate(WHILE)
        assert world.conditions()["TrafficAdmitted"] == ("False", "AdmissionRefused")
        assert world.conditions()["Ready"] == ("False", "AdmissionRefused")
        assert "the boot has its reasons" in world.message("TrafficAdmitted")
        assert world.served() == "none"
        (decode,) = world.engines("decode")
        opened = [said for said in decode.told if said["door"] == "open"]
        assert 5 < len(opened) < 20, "a minute between two at last"
        assert len(world.looks) < 100
        for engine in world.engines():
            engine.refuses = ""
        await world.operate(200)
        assert world.conditions()["Ready"] == ("True", "Serving")

    run(go())


@pytest.mark.parametrize("check", ["pair", "front"])
def test_what_could_not_be_judged_is_tried_again_with_growing_pauses_until_it_can(world: World, check: str) -> None:
    setattr(world, f"{check}_outcome", lambda _: Outcome.NOT_JUDGED)

    async def go() -> None:
        await world.operate(WHILE)
        assert world.conditions()["IsolationVerified"] == ("Unknown", "CheckNotJudged")
        assert "open" not in world.doors()
        tries = [proof.at for proof in (world.pairs if check == "pair" else world.fronts)]
        assert 8 < len(tries) < 20
        waits = gaps(tries)
        assert waits[0] < 6
        assert all(60 <= wait < 66 for wait in waits[6:]), "at least once a minute, and not more often"
        assert waits[:5] == sorted(waits[:5])
        assert len(world.looks) < 6 * len(tries)
        writes = world.kubernetes.writes
        assert writes < 100 + 8 * len(tries)
        setattr(world, f"{check}_outcome", lambda _: Outcome.PASSED)
        await world.operate(200)
        assert world.conditions()["Ready"] == ("True", "Serving")

    run(go())


@pytest.mark.parametrize("check", ["pair", "front"])
def test_what_failed_is_not_tried_again(world: World, check: str) -> None:
    setattr(world, f"{check}_outcome", lambda _: Outcome.FAILED)

    async def go() -> None:
        await world.operate(WHILE)
        assert world.conditions()["IsolationVerified"] == ("False", "CheckFailed")
        assert world.conditions()["Stalled"] == ("True", "CheckFailed")
        assert len(world.pairs if check == "pair" else world.fronts) == 1
        assert "open" not in world.doors()
        assert world.served() == "none"
        assert len(world.looks) < 30, "nothing asks again"

    run(go())


def test_a_boot_that_failed_is_out_for_good_and_the_next_boot_is_tried(world: World) -> None:
    async def go() -> None:
        world.pair_outcome = lambda _: Outcome.FAILED
        await world.settle()
        world.pair_outcome = lambda _: Outcome.PASSED
        for engine in world.engines():
            engine.boot()
        await world.operate(60)
        assert world.conditions()["Ready"] == ("True", "Serving")
        assert len(world.pairs) == 2

    run(go())


def test_a_boot_that_failed_is_not_tried_again_because_its_door_was_silent_once(world: World) -> None:
    async def go() -> None:
        world.pair_outcome = lambda _: Outcome.FAILED
        await world.settle()
        world.pair_outcome = lambda _: Outcome.PASSED
        for silent in (True, False):
            for engine in world.engines():
                engine.silent = silent
            world.pending = True
            await world.settle()
        assert len(world.pairs) == 1
        assert world.conditions()["Stalled"] == ("True", "CheckFailed")
        memory = world.reconciler._memories["ns", "pool"]
        assert len(memory.proofs) == len(memory.pods) == 2

    run(go())


def test_an_engine_that_does_not_answer_is_asked_again_and_taken_when_it_does(world: World) -> None:
    world.held.add("decode")

    async def go() -> None:
        await world.settle()
        world.held.clear()
        world.kubelet()
        (decode,) = world.engines("decode")
        decode.silent = True
        await world.operate(WHILE)
        assert world.conditions()["RolesReady"] == ("False", "EngineNotAnswering")
        assert 5 < len(world.looks) < 30
        assert world.told() == []
        decode.silent = False
        await world.operate(100)
        assert world.conditions()["Ready"] == ("True", "Serving")

    run(go())


def test_a_job_that_breaks_is_logged_and_tried_again_later(world: World, caplog: pytest.LogCaptureFixture) -> None:
    def break_down() -> None:
        raise RuntimeError("of the check itself")

    world.during_proof = break_down

    async def go() -> None:
        await world.operate(WHILE)
        assert 5 < len(world.pairs) < 20
        assert {record.levelno for record in caplog.records if record.name.startswith("kvfence")} == {logging.ERROR}
        world.during_proof = lambda: None
        await world.operate(200)
        assert world.conditions()["Ready"] == ("True", "Serving")

    run(go())


def test_what_is_known_of_boots_does_not_grow_with_their_number(world: World) -> None:
    async def go() -> None:
        await world.settle()
        memory = world.reconciler._memories["ns", "pool"]
        for _ in range(4):
            for engine in world.engines():
                engine.boot()
            world.pending = True
            await world.settle()
        sizes = [len(known) for known in (memory.facts, memory.proofs, memory.refusals)]
        assert max(sizes) <= 2
        assert len(memory.fronts) <= 1

    run(go())


def test_an_engine_that_claims_another_boot_each_time_keeps_the_operator_no_busier_than_others(world: World) -> None:
    """Its image is the user's own, and what it says is checked like anybody's answer."""
    world.held.add("decode")

    async def go() -> None:
        await world.settle()
        world.held.clear()
        world.kubelet()
        (decode,) = world.engines("decode")
        honest = FakeEngine.status

        def lying() -> dict[str, object]:
            decode.boot()
            return honest(decode)

        decode.status = lying  # type: ignore[method-assign]
        await world.operate(WHILE)
        assert len(world.looks) < 150
        assert "open" not in world.doors()

    run(go())


def test_one_of_several_engines_that_claims_another_boot_each_time_is_not_asked_without_a_pause(
    make_world: MakeWorld,
) -> None:
    world = make_world(decode=2)

    async def go() -> None:
        await world.settle()
        liar, other = world.engines("decode")
        honest = FakeEngine.status

        def lying() -> dict[str, object]:
            liar.boot()
            return honest(liar)

        liar.status = lying  # type: ignore[method-assign]
        looks = len(world.looks)
        await world.operate(600)
        assert other.door == "open"
        assert len(world.looks) - looks < 100

    run(go())


def test_the_door_of_another_pod_that_answers_at_an_engines_address_is_told_nothing(world: World) -> None:
    world.held.add("decode")

    async def go() -> None:
        await world.settle()
        world.held.clear()
        world.kubelet()
        (ip,) = (ip for ip, engine in world.wire.engines.items() if engine.mode == "decode")
        other = FakeEngine("pool-uid-1", "another-pod", "decode", world.keys_folder, 4096)
        world.made.append(other)
        world.wire.engines[ip] = other
        await world.look()
        assert world.conditions()["RolesReady"] == ("False", "EngineNotAnswering")
        assert "another pod" in world.message("RolesReady")
        await world.operate(100)
        assert world.told() == []

    run(go())


def test_a_boot_that_follows_within_a_job_of_several_rounds_is_told_nothing(make_world: MakeWorld) -> None:
    world = make_world(prefill=2)

    async def go() -> None:
        def once() -> None:
            world.during_proof = lambda: None
            (decode,) = world.engines("decode")
            decode.boot()
            decode.told.clear()

        world.during_proof = once
        await until(world, "ProvePairs")
        await asyncio.wait(world.jobs())
        (decode,) = world.engines("decode")
        assert (decode.told, decode.door) == ([], "closed")

    run(go())


def test_a_boot_that_follows_between_the_decision_and_the_admission_is_not_let_in(world: World) -> None:
    async def go() -> None:
        await until(world, "Admit")
        (decode,) = world.engines("decode")
        decode.boot()
        decode.told.clear()
        await asyncio.wait(world.jobs())
        assert (decode.told, decode.door) == ([], "closed")
        assert world.served() == "none"
        await world.operate(100)
        assert [said["door"] for said in decode.told] == ["canary", "open"], "the front is proven already"
        assert world.conditions()["Ready"] == ("True", "Serving")

    run(go())


async def until(world: World, step: str) -> None:
    """Go on until a step of this kind begins."""
    while not any(job.get_name().startswith(step) for job in world.jobs()):
        world.kubelet()
        if world.pending:
            await world.look()
        elif jobs := world.jobs():
            await asyncio.wait(jobs)
