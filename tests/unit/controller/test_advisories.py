"""Known faults while a pool comes up and while it serves: new engines stay out, what serves goes on, few are cut."""

from __future__ import annotations

import copy
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as some

from kvfence.controller.cuts import Cuts
from kvfence.domain.advisories import Advisory, CutLimit
from kvfence.domain.advisory_gate import Judged, counting
from kvfence.domain.severity import Severity
from kvfence.kube.kinds import POOL
from tests.unit.controller.virtual_time import run
from tests.unit.controller.world import KEY, World
from tests.unit.domain.known_faults import advisory, watched
from tests.unit.domain.pools_of_engines import pool

CRITICAL = advisory(severity=Severity.CRITICAL)


def tell(world: World, *advisories: Advisory) -> None:
    """Have the operator know these and no other."""
    world.watchlists._advisories = counting(advisories)


def test_a_new_pool_is_not_let_in_and_comes_up_by_itself_once_the_advisory_is_withdrawn(world: World) -> None:
    async def go() -> None:
        tell(world, CRITICAL)
        await world.settle()
        assert world.conditions()["EngineAllowed"] == ("False", "AdvisoryApplies")
        assert world.served() == "none"
        tell(world)
        await world.look()
        await world.settle()
        assert world.conditions()["TrafficAdmitted"] == ("True", "Admitted")

    run(go())


def test_a_pool_that_serves_goes_on_and_is_marked(world: World) -> None:
    async def go() -> None:
        await world.settle()
        before = (world.models(), world.workers(), world.served(), world.doors())
        tell(world, CRITICAL)
        await world.look()
        await world.settle()
        assert world.conditions()["EngineAllowed"] == ("False", "AdvisoryApplies")
        assert world.conditions()["Ready"][0] == "False"
        assert world.conditions()["TrafficAdmitted"] == ("True", "Admitted")
        assert (world.models(), world.workers(), world.served(), world.doors()) == before

    run(go())


def test_a_pool_is_cut_where_the_cluster_says_so_and_serves_again_when_nothing_applies(world: World) -> None:
    async def go() -> None:
        world.cut_limit = CutLimit(Severity.CRITICAL, 1)
        world.start_operator()
        await world.settle()
        served = world.served()
        assert served != "none"
        tell(world, CRITICAL)
        await world.look()
        await world.settle()
        assert world.conditions()["TrafficAdmitted"] == ("False", "CutByAdvisory")
        assert world.served() == "none"
        assert world.workers() == []
        await world.kill_operator()  # and the next one knows it from the status
        await world.settle()
        assert world.conditions()["TrafficAdmitted"] == ("False", "CutByAdvisory")
        tell(world)
        await world.look()
        await world.settle()
        assert world.conditions()["TrafficAdmitted"] == ("True", "Admitted")
        assert world.served() == served

    run(go())


SERVING = replace(watched(pool(), CRITICAL), serving=True)
SILENT = replace(SERVING, engines=tuple(replace(one, facts=None, judged=Judged()) for one in SERVING.engines))


@given(
    at_most=some.integers(0, 4),
    looks=some.lists(some.tuples(some.integers(0, 9), some.booleans(), some.booleans()), max_size=40),
    restart=some.integers(0, 39),
)
def test_however_many_pools_an_open_range_hits_never_more_than_allowed_stand_cut(
    at_most: int, looks: list[tuple[int, bool, bool]], restart: int
) -> None:
    cuts = Cuts(CutLimit(Severity.CRITICAL, at_most))
    standing: set[int] = set()
    for number, (which, answers, gone) in enumerate(looks):
        if number == restart:  # another operator, which has the statuses alone
            cuts = Cuts(CutLimit(Severity.CRITICAL, at_most))
            cuts.begin(
                {
                    "metadata": {"namespace": "ns", "name": str(one)},
                    "status": {"conditions": [{"type": "TrafficAdmitted", "reason": "CutByAdvisory"}]},
                }
                for one in standing
            )
        key = ("ns", str(which))
        if gone:
            cuts.forget(key)
            standing.discard(which)
            continue
        observed = replace(SERVING if answers else SILENT, serving=which not in standing)
        was = which in standing
        if cuts.judge(key, observed):
            standing.add(which)
        else:
            standing.discard(which)
        assert not was or which in standing, "what is cut stays cut while the advisory applies"
        assert len(standing) <= at_most


def test_none_is_cut_unless_the_cluster_says_so() -> None:
    assert not Cuts(None).judge(KEY, SERVING)
    assert not Cuts(CutLimit(Severity.CRITICAL, 1)).judge(KEY, replace(watched(pool(), advisory()), serving=True))


def test_a_pool_that_does_not_serve_takes_no_place() -> None:
    cuts = Cuts(CutLimit(Severity.CRITICAL, 1))
    assert not cuts.judge(("ns", "coming-up"), replace(SERVING, serving=False))
    assert cuts.judge(("ns", "serving"), copy.copy(SERVING))


def test_a_pool_whose_exemption_nobody_answers_for_is_looked_after_all_the_same(world: World) -> None:
    async def go() -> None:
        nobody = {"id": "KVF-2026-9001", "who": " ", "reason": "x", "until": "2099-01-01T00:00:00Z"}
        world.ask_for(lambda spec: spec.update(advisories={"exemptions": [nobody]}))
        await world.settle()
        assert world.conditions()["TrafficAdmitted"] == ("True", "Admitted")

    run(go())


def test_the_first_look_of_another_operator_gives_no_place_away(world: World) -> None:
    async def go() -> None:
        world.cut_limit = CutLimit(Severity.CRITICAL, 1)
        world.start_operator()
        await world.settle()
        tell(world, CRITICAL)
        await world.look()
        await world.settle()
        assert world.conditions()["TrafficAdmitted"] == ("False", "CutByAdvisory")
        await world.kill_operator()
        cuts = world.reconciler.cuts
        cuts.begin(world.kubernetes.all(POOL))
        world.reconciler._memory(KEY, "pool-uid-1")  # a look has begun, and asks engines now
        assert not cuts.judge(("ns", "another"), SERVING)

    run(go())


def test_a_pool_that_is_gone_gives_its_place_back_though_it_was_never_looked_at() -> None:
    cuts = Cuts(CutLimit(Severity.CRITICAL, 1))
    cut = {"type": "TrafficAdmitted", "reason": "CutByAdvisory"}
    cuts.begin([{"metadata": {"namespace": "ns", "name": "gone"}, "status": {"conditions": [cut]}}])
    assert not cuts.judge(("ns", "serving"), SERVING)
    cuts.keep([{"metadata": {"namespace": "ns", "name": "serving"}}])
    assert cuts.judge(("ns", "serving"), SERVING)
