"""A pool coming up and serving, step by step: what is proven, what is listed, who is let in, and when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvfence.api.v1alpha1.conditions import ConditionStatus
from kvfence.api.v1alpha1.pool import RoleType
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.domain.decisions import Admit, Decision, ProveFronts, ProvePairs, decide
from kvfence.domain.engines import DoorState, Engine
from kvfence.domain.observed import Known, Observed, Role
from kvfence.domain.traffic_admitted import traffic_admitted
from tests.unit.domain.pools_of_engines import (
    CAP,
    FAILED,
    FRONT_FAILED,
    FRONT_NOT_JUDGED,
    NOT_JUDGED,
    decode,
    done,
    exchanged,
    named,
    nonces,
    pool,
    prefill,
    proven,
    restarted,
    router,
    serving,
    spec,
    starting,
    told,
    with_door,
    with_fronts,
)

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN


def reasons(decision: Decision) -> list[Reason]:
    return [finding.reason for finding in decision.findings]


def pairs(decision: Decision) -> list[tuple[str, str]]:
    assert isinstance(decision.step, ProvePairs)
    return [(one.name, other.name) for one, other in decision.step.pairs]


def of_pages(page: int) -> tuple[Engine, ...]:
    return (decode(page=page), prefill(0, page=page), prefill(1, page=page))


@pytest.mark.parametrize(("page", "cap"), [(1, 1003), (16, 992)])
def test_a_pool_that_starts_is_waited_for_to_the_last_engine(page: int, cap: int) -> None:
    nothing = replace(pool(), engines=(), routers=(), runs=False)
    loading = pool(*(starting(one) for one in of_pages(page)), routers=(router(ready=False),))
    two_of_three = exchanged(loading, *of_pages(page)[:2])
    for observed in (nothing, loading, two_of_three):
        decision = decide(observed)
        assert (decision.runs, decision.cap, decision.step) == (True, None, None)
        assert (decision.listed, decision.serves) == ((), False)
        assert reasons(decision)[:2] == [Reason.VERSION_ALLOWED, Reason.ENGINES_STARTING]
    assert decide(loading).findings[1].message == "Started: 0 of 1 of role decode, 0 of 2 of role prefill."
    assert decide(exchanged(two_of_three, of_pages(page)[2])).cap == cap


@pytest.mark.parametrize(("page", "cap"), [(1, 1003), (16, 992)])
def test_a_pool_that_has_started_comes_up_step_by_step(page: int, cap: int) -> None:
    names = named(of_pages(page))
    measured = pool(*of_pages(page), routers=(router(ready=False),))
    first = decide(measured)
    assert (first.cap, first.listed, first.serves) == (cap, (), False)
    assert isinstance(first.step, ProvePairs)
    assert pairs(first) == [("prefill-0", "decode-0"), ("prefill-1", "decode-0")]
    assert first.step.cap == cap
    found = [Reason.VERSION_ALLOWED, Reason.ENGINES_STARTED, Reason.CONTEXT_CAPPED, Reason.DEFENCES_ENFORCED]
    assert reasons(first) == [*found, Reason.PROVING]

    pairs_proven = done(measured, first.step)
    second = decide(pairs_proven)  # the router needs its list to become ready
    assert (named(second.listed), second.step, second.serves) == (names, None, False)
    assert traffic_admitted(pairs_proven, second).reason is Reason.ADMITTING

    router_ready = replace(pairs_proven, routers=(router(),))
    third = decide(router_ready)
    assert (named(third.listed), third.serves) == (names, False)
    assert third.step == ProveFronts(router_ready.engines, (router(),), cap)

    front_proven = done(router_ready, third.step)
    fourth = decide(front_proven)
    assert (named(fourth.listed), fourth.serves) == (names, False)
    assert fourth.step == Admit(front_proven.engines, cap)
    assert reasons(fourth) == [*found, Reason.ISOLATION_PROVEN]
    assert traffic_admitted(front_proven, fourth).reason is Reason.ADMITTING

    opened = done(front_proven, fourth.step)
    last = decide(opened)
    assert (named(last.listed), last.step, last.serves, last.cap) == (names, None, True, cap)
    assert traffic_admitted(opened, last).message == "Users' requests are let in, to 2 prefill and 1 decode engines."


def test_after_admission_nothing_is_left_to_do() -> None:
    decision = decide(with_fronts(serving()))
    assert (decision.step, decision.serves, decision.cap) == (None, True, CAP)
    assert named(decision.listed) == ["decode-0", "prefill-0", "prefill-1"]
    assert all(finding.holds for finding in decision.findings)


def test_an_operator_that_remembers_nothing_goes_on_where_the_doors_are() -> None:
    ready = with_fronts(proven(pool()))
    opened = done(done(ready, ProveFronts(ready.engines, ready.routers, CAP)), Admit(ready.engines, CAP))
    forgetful = replace(opened, known=Known())
    decision = decide(forgetful)  # killed after the doors opened, before the Service led to them
    assert isinstance(decision.step, ProveFronts)
    assert not decision.serves
    assert decide(replace(forgetful, serving=True)).serves
    canary = replace(done(pool(), ProveFronts(pool().engines, pool().routers, CAP)), known=Known())
    assert isinstance(decide(canary).step, ProvePairs)
    assert decide(canary).listed == ()


@pytest.fixture
def ready() -> Observed:
    """One step before admission: all is proven, the doors take canaries."""
    proving = pool()
    return done(proven(proving), ProveFronts(proving.engines, proving.routers, CAP))


@pytest.mark.parametrize(
    ("fronts", "status", "reason", "admitted"),
    [
        (FRONT_FAILED, FALSE, Reason.CHECK_FAILED, Reason.NOT_ADMITTED),
        (FRONT_NOT_JUDGED, UNKNOWN, Reason.CHECK_NOT_JUDGED, Reason.ADMITTING),
        ((*FRONT_NOT_JUDGED, *FRONT_FAILED), FALSE, Reason.CHECK_FAILED, Reason.NOT_ADMITTED),
    ],
)
def test_a_front_that_is_not_proven_lets_nobody_in_and_is_not_asked_again_at_once(
    ready: Observed, fronts: tuple[object, ...], status: ConditionStatus, reason: Reason, admitted: Reason
) -> None:
    changed = with_fronts(ready, fronts)  # type: ignore[arg-type]
    decision = decide(changed)
    assert (decision.step, decision.serves) == (None, False)
    assert (decision.findings[4].status, decision.findings[4].reason) == (status, reason)
    assert traffic_admitted(changed, decision).reason is admitted


def test_what_was_proven_under_another_cap_is_proven_again_and_the_front_after_it(ready: Observed) -> None:
    smaller = replace(ready, spec=spec(contextLength={"headroomPercent": 50}))
    first = decide(smaller)
    assert first.cap == 512
    assert isinstance(first.step, ProvePairs)
    assert (first.step.cap, first.listed, first.serves) == (512, (), False)
    assert pairs(first) == [("prefill-0", "decode-0"), ("prefill-1", "decode-0")]
    second = decide(replace(proven(smaller, cap=512)))
    assert isinstance(second.step, ProveFronts)
    assert second.findings[4].reason is Reason.PROVING


def test_one_that_could_not_be_judged_waits_and_the_others_are_proven() -> None:
    waiting = proven(pool(), prefill(0), verdicts=NOT_JUDGED)
    assert pairs(decide(waiting)) == [("prefill-1", "decode-0")]
    assert decide(waiting).listed == ()


def test_a_boot_that_failed_is_not_tried_again_and_its_next_start_is() -> None:
    failed = proven(pool(), prefill(0), verdicts=FAILED)
    assert "prefill-0" not in named(told(decide(failed).step))
    again = exchanged(failed, restarted(prefill(0)))
    assert ("prefill-0", "decode-0") in pairs(decide(again))


def test_a_door_that_refused_keeps_the_pool_closed_and_is_not_asked_again_at_once(ready: Observed) -> None:
    refused = replace(ready, known=replace(ready.known, refusals={nonces(ready.engines[0]): "the epoch is older"}))
    decision = decide(refused)
    assert isinstance(decision.step, Admit)
    assert named(decision.step.engines) == ["prefill-0", "prefill-1"]
    left = decide(done(refused, decision.step))
    assert (left.step, left.serves) == (None, False)
    finding = traffic_admitted(refused, decision)
    assert finding.reason is Reason.ADMISSION_REFUSED
    assert "decode-0" in finding.message
    assert "the epoch is older" in finding.message


def test_open_doors_of_a_pool_that_is_not_served_get_a_cap_that_went_down_meanwhile() -> None:
    """A pod that came later may hold the old cap only by its headroom, which a first offer leaves free."""
    smaller = exchanged(serving(), prefill(0, tokens=1020, start=2))
    kept = exchanged(smaller, with_door(smaller.engines[1], DoorState.OPEN, peers=smaller.peers))
    assert decide(with_fronts(kept)).step is None
    lost = replace(kept, serving=False)
    first = decide(lost)
    assert (first.cap, first.serves) == (999, False)
    assert first.step == Admit(lost.engines, 999)
    lowered = done(lost, first.step)
    second = decide(lowered)
    assert isinstance(second.step, ProveFronts)
    assert decide(done(lowered, second.step)).serves


def test_nothing_is_started_that_is_not_allowed_and_what_runs_is_left_alone() -> None:
    old = spec(engine={"sglang": {"image": "registry.example/sglang:v0.5.23", "version": "0.5.19"}})
    empty = replace(pool(), engines=(), spec=old, runs=False)
    assert not decide(empty).runs
    assert decide(empty).findings[1].reason is Reason.NOT_STARTED
    assert decide(replace(empty, runs=True)).runs
    assert decide(replace(serving(), spec=old, runs=False)).runs, "users are served by it"
    assert decide(replace(serving(), spec=old)).serves


def test_a_new_revision_waits_until_the_engines_before_it_are_gone() -> None:
    waiting = replace(pool(), engines=(), runs=False, leaving=3)
    decision = decide(waiting)
    assert not decision.runs
    assert decision.findings[1].reason is Reason.OLD_REVISION_LEAVING
    assert decide(replace(waiting, leaving=0)).runs


def test_a_restart_in_place_is_out_at_once_and_comes_back_proven_with_an_open_partner() -> None:
    before = serving()
    fresh = exchanged(before, restarted(before.engines[1]))
    first = decide(fresh)
    assert (named(first.listed), first.serves) == (["decode-0", "prefill-1"], True)
    assert pairs(first) == [("prefill-0", "decode-0")]
    assert first.step is not None
    second = decide(done(fresh, first.step))
    assert named(second.listed) == ["decode-0", "prefill-1"]
    assert isinstance(second.step, Admit)
    assert named(second.step.engines) == ["prefill-0"]
    last = decide(with_fronts(done(done(fresh, first.step), second.step)))
    assert (len(last.listed), last.step) == (3, None)


def test_a_smaller_pool_lowers_the_cap_of_those_that_serve_before_it_is_proven() -> None:
    before = serving()
    smaller = exchanged(before, prefill(0, tokens=900, start=2))
    first = decide(smaller)
    assert first.cap == 882
    assert isinstance(first.step, Admit)
    assert named(first.step.engines) == ["decode-0", "prefill-1"]
    lowered = done(smaller, first.step)
    assert pairs(decide(lowered)) == [("prefill-0", "decode-0")]
    grown = decide(exchanged(lowered, prefill(0, tokens=4000, start=3)))
    assert grown.cap == 882


def test_new_peers_are_told_to_open_doors_before_a_new_pod_is_proven() -> None:
    before = serving()
    three = exchanged(before, prefill(2))
    three = replace(three, roles=(three.roles[0], Role("prefill", RoleType.PREFILL, 3)))
    first = decide(three)
    assert first.step == Admit(before.engines, CAP)
    assert len(three.peers) == 3
    assert first.step is not None
    assert pairs(decide(done(three, first.step))) == [("prefill-2", "decode-0")]


def test_without_any_engine_of_a_type_what_is_open_is_left_and_nobody_new_comes_in() -> None:
    before = serving()
    alone = exchanged(before, starting(before.engines[0]), restarted(before.engines[1]))
    decision = decide(alone)
    assert (named(decision.listed), decision.step, decision.serves) == (["prefill-1"], None, True)
    finding = traffic_admitted(alone, decision)
    assert (finding.status, finding.reason) == (FALSE, Reason.NOT_ADMITTED)
    assert "type Decode" in finding.message


def test_an_open_boot_that_failed_a_check_is_listed_no_more() -> None:
    failed = proven(serving(), prefill(0), verdicts=FAILED)
    decision = decide(failed)
    assert named(decision.listed) == ["decode-0", "prefill-1"]
    assert "prefill-0" not in named(told(decision.step))
    assert decision.findings[4].reason is Reason.CHECK_FAILED


def every_state(engines: tuple[Engine, ...]) -> list[Observed]:
    made = pool(*engines)
    return [made, proven(made), with_fronts(proven(made)), serving(*engines)]


@pytest.mark.parametrize("door", [DoorState.DRAINING, DoorState.TAINTED])
@pytest.mark.parametrize("which", [0, 1])
def test_a_door_that_is_shut_for_good_is_told_nothing(door: DoorState, which: int) -> None:
    for state in every_state(pool().engines):
        shut = exchanged(state, with_door(state.engines[which], door))
        decision = decide(shut)
        name = state.engines[which].name
        assert name not in named(told(decision.step))
        assert name not in named(decision.listed)
        assert not decision.findings[1].holds, "nobody would know why nothing goes on"
