"""A cap counts once every process has taken it, a check counts for the cap that it was made under, and what is open
with more than fits comes before everything else.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kvfence.controller import jobs
from kvfence.controller.jobs import Jobs, Subject
from kvfence.controller.memory import PoolMemory
from kvfence.domain.decisions import ProvePairs
from kvfence.domain.engines import DoorState
from kvfence.domain.verdicts import Outcome, Verdict
from kvfence.engine.admission import Signer
from kvfence.engine.pair import Client
from kvfence.verify import pair_suite
from tests.unit.controller.fake_engines import Doors, FakeEngine, Wire
from tests.unit.controller.virtual_time import run
from tests.unit.controller.world import World
from tests.unit.domain.pools_of_engines import decode, prefill, with_door

MakeWorld = Callable[..., World]
CAP, LOWER = 1003, 588
"""98 % of 1,024 tokens, and of 600."""


def shrink(engine: FakeEngine) -> None:
    """Have an engine start anew with a smaller pool."""
    engine.pool_tokens = 600
    engine.boot()


def cap_of(world: World) -> list[int]:
    return [model["max_model_len"] for model in world.models()]


@pytest.mark.parametrize("operator", ["of before", "that is new"])
def test_an_open_engine_whose_processes_have_not_taken_its_cap_is_told_again(world: World, operator: str) -> None:
    async def go() -> None:
        await world.settle()
        (decode_engine,) = world.engines("decode")
        (other,) = world.engines("prefill")
        told = len(other.told)
        decode_engine.told.clear()
        decode_engine.lag()
        if operator == "that is new":
            await world.kill_operator()
        world.pending = True
        await world.settle()
        assert [(said["door"], said["cap"]) for said in decode_engine.told] == [("open", CAP)]
        assert len(other.told) == told
        assert world.conditions()["Ready"] == ("True", "Serving")

    run(go())


def test_an_engine_that_will_not_take_its_cap_leaves_the_list_and_nobody_is_let_in_beside_it(
    make_world: MakeWorld,
) -> None:
    world = make_world(prefill=2)

    async def go() -> None:
        await world.settle()
        lagging, new = world.engines("prefill")
        pairs = len(world.pairs)
        lagging.lag()
        lagging.refuses = "a rank does not answer"
        new.boot()
        new.told.clear()
        world.pending = True
        await world.settle()
        assert lagging.pod not in str(world.workers())
        assert (len(world.pairs), new.told) == (pairs, [])
        assert world.conditions()["TrafficAdmitted"][0] == "False", "no prefill engine is left"
        lagging.refuses = ""
        await world.operate(200)
        assert world.doors() == ["open"] * 3
        assert len(world.workers()) == 3
        assert world.conditions()["Ready"] == ("True", "Serving")

    run(go())


def test_engines_that_take_more_than_fits_are_told_before_anything_new_is_proven(make_world: MakeWorld) -> None:
    world = make_world(prefill=2)

    async def go() -> None:
        await world.settle()
        first, other = world.engines("prefill")
        grants: list[int] = []
        world.during_proof = lambda: grants.extend(one.grant.cap for one in world.engines() if one is not first)
        shrink(first)
        world.pending = True
        await world.settle()
        assert grants == [LOWER, LOWER], "before the smaller one is proven"
        assert other.told[-1]["cap"] == LOWER
        assert cap_of(world) == [LOWER]
        assert world.doors() == ["open"] * 3

    run(go())


def test_an_engine_that_goes_on_taking_more_than_fits_leaves_the_list(make_world: MakeWorld) -> None:
    world = make_world(prefill=2)

    async def go() -> None:
        await world.settle()
        first, other = world.engines("prefill")
        pairs = len(world.pairs)
        other.refuses = "it has its reasons"
        shrink(first)
        world.pending = True
        await world.settle()
        assert other.pod not in str(world.workers())
        assert len(world.pairs) == pairs, "nothing is proven beside it"
        other.refuses = ""
        await world.operate(200)
        assert world.doors() == ["open"] * 3
        assert {engine.grant.cap for engine in world.engines()} == {LOWER}

    run(go())


def test_what_was_proven_under_a_higher_cap_is_proven_again_under_the_one_that_holds(make_world: MakeWorld) -> None:
    world = make_world(prefill=2)

    def once(_: str) -> Outcome:
        world.front_outcome = lambda _: Outcome.PASSED
        shrink(world.engines("prefill")[0])
        return Outcome.PASSED

    async def go() -> None:
        world.front_outcome = once
        await world.operate(100)
        assert world.conditions()["Ready"] == ("True", "Serving")
        last = {proof.subject: proof.limits.cap for proof in world.pairs if proof.limits is not None}
        assert set(last.values()) == {LOWER}
        assert len(last) == 2, "either prefill engine"
        assert len(world.fronts) == 2
        assert cap_of(world) == [LOWER]

    run(go())


def test_engines_of_another_image_under_the_same_name_are_kept_out(world: World) -> None:
    world.images["decode"] = "another"

    async def go() -> None:
        await world.settle()
        assert world.conditions()["EngineAllowed"] == ("False", "ImagesDiffer")
        assert world.conditions()["Stalled"] == ("True", "ImagesDiffer")
        assert (world.told(), world.served()) == ([], "none")

    run(go())


@pytest.mark.parametrize(("cap", "least", "most"), [(1003, 30, 40), (131_072, 90, 120), (1_000_000, 500, 600)])
def test_the_longest_prompt_has_the_time_that_a_slow_engine_needs_for_it(
    monkeypatch: pytest.MonkeyPatch, cap: int, least: float, most: float
) -> None:
    """At 2,000 tokens a second."""
    limits: list[float] = []

    class Watched(Client):
        def __init__(self, timeout_seconds: float) -> None:
            limits.append(timeout_seconds)
            super().__init__(timeout_seconds)

    async def prove_pair(*_: object) -> tuple[Verdict, ...]:
        return ()

    monkeypatch.setattr(jobs, "Client", Watched)
    monkeypatch.setattr(pair_suite, "prove_pair", prove_pair)
    pair = tuple(with_door(one, DoorState.OPEN) for one in (prefill(), decode()))
    step = ProvePairs(((pair[0], pair[1]),), cap)
    doors = Jobs(Doors(Wire()), Signer.from_seed(bytes(32)))
    run(doors.do(step, Subject("pool-uid", "revision", "tiny", cap, ()), PoolMemory("pool-uid")))
    (limit,) = limits
    assert least <= limit <= most
