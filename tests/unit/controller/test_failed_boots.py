"""A boot in which a check saw what must not be is out for good: its door knows it, whichever operator comes next."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from kvfence.domain.verdicts import Outcome
from tests.unit.controller.virtual_time import run
from tests.unit.controller.world import World

MakeWorld = Callable[..., World]


def add_a_decode_engine(world: World) -> None:
    world.ask_for(lambda spec: spec["roles"][1].update(replicas=2))


def test_a_boot_that_failed_is_out_for_an_operator_after_this_one_too(world: World) -> None:
    async def go() -> None:
        world.pair_outcome = lambda _: Outcome.FAILED
        await world.settle()
        assert world.doors() == ["tainted", "tainted"]
        assert [said["door"] for said in world.told()] == ["canary", "tainted"] * 2
        world.pair_outcome = lambda _: Outcome.PASSED
        await world.kill_operator()
        await world.operate(500)
        assert len(world.pairs) == 1
        assert world.doors() == ["tainted", "tainted"]
        assert world.served() == "none"
        for engine in world.engines():
            engine.boot()
        await world.operate(100)
        assert world.conditions()["Ready"] == ("True", "Serving")

    run(go())


def test_an_open_partner_of_a_boot_that_failed_serves_on(world: World) -> None:
    async def go() -> None:
        await world.settle()
        (prefill,) = world.engines("prefill")
        (before,) = world.engines("decode")
        told = len(before.told)
        world.pair_outcome = lambda _: Outcome.FAILED
        add_a_decode_engine(world)
        await world.settle()
        (new,) = (engine for engine in world.engines("decode") if engine is not before)
        assert (prefill.door, before.door, new.door) == ("open", "open", "tainted")
        assert {said["door"] for said in prefill.told[-1:]} == {"open"}
        assert len(before.told) == told
        assert len(world.workers()) == 2
        assert world.conditions()["TrafficAdmitted"] == ("True", "Admitted")

    run(go())


@pytest.mark.parametrize("how", ["refuses", "is silent", "is another boot"])
def test_a_door_that_cannot_be_shut_for_good_is_said_in_the_log_and_its_boot_is_out_all_the_same(
    world: World, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    def afterwards() -> None:
        (decode,) = world.engines("decode")
        decode.refuses = "it has its reasons" if how == "refuses" else ""
        decode.silent = how == "is silent"
        if how == "is another boot":
            decode.boot()

    async def go() -> None:
        world.pair_outcome = lambda _: Outcome.FAILED
        world.during_proof = afterwards
        await world.settle()
        (decode,) = world.engines("decode")
        why = {"refuses": "it has its reasons", "is silent": "does not answer", "is another boot": "started anew"}
        (said,) = (record.getMessage() for record in caplog.records if record.name == "kvfence.controller.jobs")
        assert "was not shut for good" in said
        assert why[how] in said
        assert not any(one in said for one in world.passes)
        decode.refuses, decode.silent, world.during_proof = "", False, lambda: None
        world.pending = True
        await world.settle()
        assert "open" not in world.doors()
        assert world.served() == "none"

    run(go())


def test_no_words_of_a_failed_check_have_a_pass_in_them(world: World) -> None:
    async def go() -> None:
        world.pair_outcome = lambda _: Outcome.FAILED
        await world.settle()
        everything = json.dumps(list(world.kubernetes.objects.values()))
        assert world.passes
        assert not any(one in everything for one in world.passes)

    run(go())
