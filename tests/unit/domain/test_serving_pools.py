"""A pool that serves: who stays listed, what is told first, and what cuts users off."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvfence.api.v1alpha1.conditions import ConditionStatus
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.api.v1alpha1.status import PoolStatus
from kvfence.domain.decisions import Admit, ProveFronts, ProvePairs, decide
from kvfence.domain.engines import DoorState, Engine
from kvfence.domain.observed import Observed
from kvfence.domain.traffic_admitted import traffic_admitted
from tests.unit.domain.pools_of_engines import (
    CAP,
    FAILED,
    FRONT_FAILED,
    FRONT_NOT_JUDGED,
    REVISION,
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

FALSE = ConditionStatus.FALSE
ALL = ["decode-0", "prefill-0", "prefill-1"]


def unheard(one: Engine, *, ready: bool = True) -> Engine:
    """The same engine when nothing comes back from its door."""
    return replace(one, boot=None, facts=None, silent="late", unheard=True, pod=replace(one.pod, ready=ready))


def refusing(observed: Observed, *engines: Engine) -> Observed:
    refusals = {nonces(one): "the epoch is older" for one in engines}
    return replace(observed, known=replace(observed.known, refusals=refusals))


def not_applied(one: Engine) -> Engine:
    assert one.boot is not None
    return replace(one, boot=replace(one.boot, applied=False))


# --- an engine that is not heard ---


def test_an_engine_that_is_not_heard_stays_listed_while_the_kubelet_calls_it_ready() -> None:
    quiet = with_fronts(exchanged(serving(), unheard(decode())))
    decision = decide(quiet)
    assert (named(decision.listed), decision.step, decision.serves) == (ALL, None, True)
    assert traffic_admitted(quiet, decision).message.endswith("to 2 prefill and 1 decode engines.")
    assert decision.findings[1].reason is Reason.ENGINE_NOT_ANSWERING
    nobody = decide(exchanged(quiet, *(unheard(one) for one in quiet.engines)))
    assert (named(nobody.listed), nobody.step, nobody.serves) == (ALL, None, True)


@pytest.mark.parametrize(
    "gone",
    [
        unheard(decode(), ready=False),
        replace(unheard(decode()), pod=replace(decode().pod, started=False, ready=True)),
        replace(unheard(decode()), unheard=False),  # another pod's door answers, or it says that it is starting
        starting(decode()),
    ],
)
def test_one_that_the_kubelet_does_not_call_ready_or_that_says_something_else_leaves_the_list(gone: Engine) -> None:
    assert named(decide(exchanged(serving(), gone)).listed) == ["prefill-0", "prefill-1"]


def test_an_engine_that_is_not_heard_is_not_listed_before_the_pool_serves_and_holds_it_up() -> None:
    decision = decide(exchanged(replace(serving(), serving=False), unheard(decode())))
    assert (decision.listed, decision.step, decision.serves) == ((), None, False)


def test_the_fronts_are_not_proven_while_an_engine_behind_them_is_not_heard() -> None:
    """A canary for it has no pass, and the router would know a worker that is not among those asked about."""
    quiet = exchanged(serving(prefill(0), prefill(1), decode(0), decode(1)), unheard(decode(1)))
    assert len(decide(quiet).listed) == 4
    assert decide(quiet).step is None
    assert isinstance(decide(serving(*pool().engines, decode(1))).step, ProveFronts), "the control"


# --- an engine that takes more than is on offer ---


@pytest.fixture
def smaller() -> Observed:
    """A pod that came later holds less than the cap, so that it has to go down."""
    return exchanged(serving(), prefill(0, tokens=900, start=2))


def test_an_open_door_that_refused_a_lower_cap_leaves_the_list_and_nobody_new_comes_in_beside_it(
    smaller: Observed,
) -> None:
    first = decide(smaller)
    assert first.step == Admit((smaller.engines[0], smaller.engines[2]), 882)
    assert named(first.listed) == ["decode-0", "prefill-1"], "as long as it may still obey"
    refused = refusing(smaller, smaller.engines[0])
    second = decide(refused)
    assert isinstance(second.step, Admit)
    assert named(second.step.engines) == ["prefill-1"]
    assert named(second.listed) == ["prefill-1"]
    lowered = done(refused, second.step)
    for observed in (lowered, proven(lowered, lowered.engines[1])):
        third = decide(observed)
        assert (named(third.listed), third.step, third.serves) == (["prefill-1"], None, True)
    finding = traffic_admitted(lowered, decide(lowered))
    assert (finding.status, finding.reason) == (FALSE, Reason.NOT_ADMITTED), "no decode engine is listed"
    forgotten = decide(replace(lowered, known=replace(lowered.known, refusals={})))
    assert forgotten.step == Admit((lowered.engines[0],), 882)


def test_an_open_door_that_refused_new_peers_alone_stays_listed_and_others_come_in() -> None:
    three = exchanged(serving(), prefill(2))
    refused = done(refusing(three, three.engines[0]), Admit(three.engines[1:3], CAP))
    decision = decide(refused)
    assert named(decision.listed) == ALL
    assert isinstance(decision.step, ProvePairs)


@pytest.mark.parametrize("refuses", [False, True])
def test_an_admission_that_not_every_process_has_taken_is_told_again_before_anything_new(refuses: bool) -> None:
    before = exchanged(serving(), not_applied(serving().engines[0]), restarted(prefill(0)))
    observed = proven(before, before.engines[1])
    observed = refusing(observed, observed.engines[0]) if refuses else observed
    decision = decide(observed)
    if refuses:
        assert (named(decision.listed), decision.step) == (["prefill-1"], None)
        return
    assert decision.step == Admit((observed.engines[0],), CAP)
    assert named(decision.listed) == ["decode-0", "prefill-1"]
    assert isinstance(decide(done(observed, decision.step)).step, Admit)


def test_a_pool_does_not_serve_before_every_process_has_taken_the_cap() -> None:
    opened = replace(with_fronts(serving()), serving=False)
    assert decide(opened).serves, "the control"
    late = exchanged(opened, not_applied(opened.engines[1]))
    assert (decide(late).serves, decide(late).step) == (False, Admit((late.engines[1],), CAP))
    assert not decide(refusing(late, late.engines[1])).serves
    assert decide(refusing(late, late.engines[1])).listed == ()


def test_an_open_door_is_told_a_lower_cap_before_a_new_boot_is_proven_with_it(smaller: Observed) -> None:
    """With a partner that takes more, the check of a prompt that is too long would fail the new one."""
    cut_off = replace(smaller, serving=False)
    first = decide(cut_off)
    assert (first.listed, first.step) == ((), Admit((smaller.engines[0], smaller.engines[2]), 882))
    refused = refusing(cut_off, smaller.engines[0], smaller.engines[2])
    assert (decide(refused).listed, decide(refused).step) == ((), None)
    assert first.step is not None
    assert isinstance(decide(done(cut_off, first.step)).step, ProvePairs)


def test_one_that_was_proven_under_another_cap_is_proven_again_before_it_is_let_in() -> None:
    fresh = exchanged(serving(), restarted(prefill(0)))
    new = fresh.engines[1]
    assert decide(proven(fresh, new)).step == Admit((new,), CAP), "the control"
    again = decide(proven(fresh, new, cap=CAP + 1))
    assert isinstance(again.step, ProvePairs)
    assert named(told(again.step)) == ["prefill-0", "decode-0"]
    assert decide(proven(fresh, new, verdicts=FAILED, cap=CAP + 1)).findings[4].reason is Reason.CHECK_FAILED


# --- fronts ---


def test_fronts_of_other_routers_are_proven_last_and_with_engines_that_are_open() -> None:
    unknown = serving()
    decision = decide(unknown)
    assert decision.step == ProveFronts(unknown.engines, unknown.routers, CAP)
    assert (named(decision.listed), decision.serves) == (ALL, True)
    assert decide(done(unknown, decision.step)).step is None
    assert decide(with_fronts(unknown, FRONT_NOT_JUDGED)).step is None
    assert decide(with_fronts(unknown, FRONT_NOT_JUDGED)).serves
    for late in ((), (router(ready=False),), (router(), router(1, ready=False)), (replace(router(), ip=None),)):
        assert decide(replace(unknown, routers=late)).step is None
    fresh = exchanged(unknown, restarted(prefill(0)))
    assert isinstance(decide(fresh).step, ProvePairs)
    nobody = exchanged(unknown, *(restarted(one) for one in unknown.engines))
    assert decide(proven(nobody, verdicts=FAILED)).step is None, "nobody is behind the front"


@pytest.mark.parametrize(
    "more",
    [
        lambda it: it,
        lambda it: exchanged(it, starting(decode())),  # nothing can be offered meanwhile
        lambda it: exchanged(it, unheard(decode())),
        lambda it: exchanged(it, prefill(0, tokens=900, start=2)),  # another cap comes
        lambda it: replace(it, spec=spec(contextLength={"minimumTokens": 2000})),
    ],
)
def test_a_front_that_failed_cuts_users_off_whatever_else_is_going_on(more: object) -> None:
    assert callable(more)
    observed = more(with_fronts(serving(), FRONT_FAILED))
    assert decide(more(with_fronts(serving()))).serves, "the control"
    decision = decide(observed)
    assert (decision.listed, decision.step, decision.serves) == ((), None, False)
    assert (decision.findings[4].status, decision.findings[4].reason) == (FALSE, Reason.CHECK_FAILED)
    assert not traffic_admitted(observed, decision).holds


def test_a_front_that_failed_keeps_the_list_empty_after_users_were_cut_off_and_while_coming_up() -> None:
    cut_off = with_fronts(replace(serving(), serving=False), FRONT_FAILED)
    coming = done(proven(pool()), ProveFronts(pool().engines, pool().routers, CAP))
    for observed in (cut_off, with_fronts(coming, FRONT_FAILED)):
        assert (decide(observed).listed, decide(observed).step, decide(observed).serves) == ((), None, False)
    assert named(decide(with_fronts(coming, FRONT_NOT_JUDGED)).listed) == ALL


# --- what says that it serves ---


def status(revision: str | None, tokens: int) -> PoolStatus:
    context = {"requestedTokens": 4096, "advertisedTokens": tokens}
    return PoolStatus.model_validate({"currentRevision": revision, "contextLength": context})


@pytest.mark.parametrize("said", [PoolStatus(), status(None, 0), status("another", 5000), status(REVISION, 0)])
def test_a_status_that_was_wiped_or_edited_takes_nothing_from_a_pool_that_serves(said: PoolStatus) -> None:
    decision = decide(replace(with_fronts(serving()), status=said))
    assert (named(decision.listed), decision.step, decision.serves, decision.cap) == (ALL, None, True, CAP)


def test_a_status_that_names_the_revision_lets_nobody_in() -> None:
    claimed = replace(pool(), status=status(REVISION, CAP))
    assert isinstance(decide(claimed).step, ProvePairs)
    assert (decide(claimed).listed, decide(claimed).serves) == ((), False)


def test_what_a_status_says_of_a_cap_counts_for_its_own_revision_while_it_serves() -> None:
    lower = replace(serving(), status=status(REVISION, 500))
    assert lower.applied_tokens == 500
    assert replace(lower, status=status("another", 500)).applied_tokens == CAP
    assert replace(pool(), status=status(REVISION, 500)).applied_tokens is None
    back = replace(pool(), status=status(REVISION, 0))  # nothing was on offer while another revision came up
    assert back.applied_tokens is None
    assert decide(back).cap == decide(replace(back, serving=True)).cap == CAP


@pytest.mark.parametrize("leaving", [0, 3])
def test_what_serves_goes_on_although_its_controller_revision_is_gone(leaving: int) -> None:
    old = spec(engine={"sglang": {"image": "registry.example/sglang:v0.5.23", "version": "0.5.19"}})
    gone = replace(serving(), runs=False, leaving=leaving, spec=old)
    assert decide(gone).runs
    assert not decide(replace(gone, serving=False)).runs, "the control"


@pytest.mark.parametrize("door", [DoorState.DRAINING, DoorState.TAINTED])
def test_nobody_is_told_to_ask_an_engine_whose_door_is_shut_for_good(door: DoorState) -> None:
    shut = exchanged(serving(), with_door(prefill(0), door))
    assert shut.peers == (prefill(1).peer,)
    quiet = exchanged(serving(), unheard(prefill(0)))
    assert quiet.peers == serving().peers, "what is not heard serves on"
