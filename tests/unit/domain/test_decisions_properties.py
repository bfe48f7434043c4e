"""Decisions as properties: whatever is observed, nobody comes in who was not proven, and everything comes to an end."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kvfence.api.v1alpha1.conditions import ConditionStatus
from kvfence.api.v1alpha1.pool import RoleType
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.api.v1alpha1.status import PoolStatus
from kvfence.domain.capacity import Offered
from kvfence.domain.decisions import Admit, ProveFronts, decide
from kvfence.domain.eligible import eligible
from kvfence.domain.engines import Boot, DoorState, Engine, Facts, Rank
from kvfence.domain.observed import Known, Observed, Role
from kvfence.domain.pods import Trouble
from kvfence.domain.summary import NEEDS_A_PERSON, all_conditions
from kvfence.domain.verdicts import Check, Outcome, Verdict
from tests.unit.domain.pools_of_engines import (
    REVISION,
    decode,
    done,
    named,
    nonces,
    pod,
    prefill,
    router,
    spec,
    told,
    with_door,
)

T = TypeVar("T")
calmly = settings(deadline=None)  # a busy machine is no failure
TYPES = {"prefill": RoleType.PREFILL, "decode": RoleType.DECODE}
PEERS = ("10.0.7.1:8998", "10.0.7.2:8998", "10.0.7.3:8998")
SOUND = Facts("0.5.23", kv_checksum=True, reserved_decode_tokens=512, auto_truncates=False)
SPECS = [
    spec(contextLength=context, integrity=integrity)
    for context in ({}, {"minimumTokens": 1000}, {"policy": "RequireFit"}, {"requestedTokens": 900})
    for integrity in ({}, {"kvChecksum": "Observe"})
]
STATUSES = [
    PoolStatus.model_validate(
        {
            "currentRevision": current,
            "contextLength": None if cap is None else {"requestedTokens": 4096, "advertisedTokens": cap},
        }
    )
    for current in (None, REVISION, REVISION, "another")
    for cap in (1003, None, 0, 500, 5000)
]
JUDGED = [
    tuple(Verdict(Check.MARKER_ISOLATION, outcome, "it", "it was seen.") for outcome in seen)
    for seen in ((Outcome.PASSED,), (Outcome.FAILED,), (Outcome.NOT_JUDGED,), (), tuple(Outcome), (Outcome.PASSED,) * 2)
]


def one_of(draw: st.DrawFn, usual: T, *others: T, odds: int = 12) -> T:
    """What is usual, and in one of so many cases one of the others: else hardly a pool would ever be proven."""
    which = draw(st.integers(0, max(odds, len(others) + 1) - 1))
    return others[which - 1] if 0 < which <= len(others) else usual


@st.composite
def odd_boots(draw: st.DrawFn, name: str, usual: int) -> Boot:
    ranks = []
    for index in range(one_of(draw, 1, 0, 2, odds=40)):
        tokens = one_of(draw, usual, 0, 8, 600, 1023, 2048, odds=30)
        limit = one_of(draw, max(0, tokens - 6), 0, 500, 2**40, odds=40)
        ranks.append(Rank(index, tokens, one_of(draw, 1, 16, 0, odds=40), limit))
    return Boot(
        nonces=(f"{name}/{one_of(draw, 1, 2)}",),
        door=draw(st.sampled_from(DoorState)),
        epoch=3,
        cap=one_of(draw, 1003, 0, 8, 500, 882, 5000, odds=12),
        peers=one_of(draw, PEERS[:2], (), PEERS, ("10.9.9.9:1",)),
        sglang="0.5.23",
        ranks=tuple(ranks),
    )


@st.composite
def engines(draw: st.DrawFn, role: str, number: int, door: DoorState) -> Engine:
    """Mostly one with nothing wrong: one that is odd keeps a whole pool from coming up."""
    if draw(st.integers(0, 3)):
        made = prefill(number) if role == "prefill" else decode(number)
        door = one_of(draw, door, *DoorState, odds=40)
        if door is DoorState.CLOSED:
            return made
        return with_door(made, door, one_of(draw, 1003, 1004, 882, 500), one_of(draw, PEERS[:1], PEERS[:2], ()))
    return draw(odd_engines(role, number))


@st.composite
def odd_engines(draw: st.DrawFn, role: str, number: int) -> Engine:
    trouble = one_of(draw, None, Trouble(Reason.ENGINE_FAILED, "It ended."))
    facts = pod(role, number, started=one_of(draw, True, False, odds=30), trouble=trouble)
    made = Engine(replace(facts, ip=one_of(draw, facts.ip, None, odds=40)), TYPES[role], 8998)
    what = one_of(draw, "answers", "silent", "no facts", odds=30)
    if what == "silent":
        return replace(made, silent="it is silent")
    made = replace(made, boot=draw(odd_boots(made.name, 1024 if role == "prefill" else 4096)))
    if what == "no facts":
        return made
    said = Facts(
        version=one_of(draw, SOUND.version, None, "0.5.20", "0.5.24", "x", odds=40),
        kv_checksum=one_of(draw, True, False, None, odds=40),
        reserved_decode_tokens=one_of(draw, 512, 0, None, odds=40),
        auto_truncates=one_of(draw, False, True, None, odds=40),
    )
    return replace(made, facts=said)


@st.composite
def observations(draw: st.DrawFn) -> Observed:
    """Any pool: also such as cannot come about, since what cannot be is where holes are."""
    door = draw(st.sampled_from([DoorState.OPEN, DoorState.CANARY, DoorState.CLOSED]))
    found = [draw(engines(role, number, door)) for role in TYPES for number in range(one_of(draw, 1, 2, 3, 0, odds=8))]
    names = [nonces(one) for one in found if one.boot is not None]
    usual = draw(st.sampled_from([JUDGED[0], ()]))
    count = {role: sum(one.pod.role == role for one in found) for role in TYPES}
    return Observed(
        spec=one_of(draw, *SPECS, odds=30),
        status=draw(st.sampled_from(STATUSES)),
        revision=REVISION,
        roles=tuple(
            Role(role, TYPES[role], max(1, count[role] + one_of(draw, 0, 1, -1, odds=30))) for role in sorted(TYPES)
        ),
        engines=tuple(sorted(found, key=lambda one: one.name)),
        leaving=one_of(draw, 0, 1),
        routers=tuple(router(number, ready=one_of(draw, True, False)) for number in range(one_of(draw, 1, 2, 0))),
        known=Known(
            verdicts={name: one_of(draw, usual, *JUDGED, odds=50) for name in names},
            fronts=draw(st.sampled_from([(), JUDGED[0], JUDGED[0], *JUDGED])),
            refusals={name: "it refused" for name in names if one_of(draw, False, True, odds=40)},
        ),
        taken=one_of(draw, (), ("Service chat",)),
        runs=one_of(draw, True, False, odds=4),
        plugin_version="0.1.0",
        newest_plugin_version="0.1.0",
    )


def is_sound(one: Engine, observed: Observed) -> bool:
    """What an engine must be to be proven or let in, said here once more and in other words."""
    said, boot = one.facts, one.boot
    if said is None or boot is None or not one.pod.started or boot.door in ("draining", "tainted") or not boot.ranks:
        return False
    checksum = said.kv_checksum is True or observed.spec.integrity.kv_checksum == "Observe"
    return said.version == "0.5.23" and checksum and said.auto_truncates is False


def outcomes(one: Engine, observed: Observed) -> set[Outcome]:
    return {verdict.outcome for verdict in observed.known.verdicts.get(nonces(one), ())}


@calmly
@given(observations())
def test_nobody_is_let_in_who_was_not_proven_under_a_cap_that_fits(observed: Observed) -> None:
    decision = decide(observed)
    if not isinstance(decision.step, Admit | ProveFronts):
        return
    for one in decision.step.engines:
        if one.is_open and observed.serving:  # it is told another cap or other peers, and stays open
            continue
        assert is_sound(one, observed)
        assert one.is_open or outcomes(one, observed) == {Outcome.PASSED}
        assert one.boot is not None
        for rank in one.boot.ranks:
            assert decision.step.cap <= rank.pool_tokens
            assert decision.step.cap <= rank.boot_input_limit + 6


@calmly
@given(observations())
def test_the_router_sends_nothing_to_a_boot_that_is_not_proven_or_not_open(observed: Observed) -> None:
    decision = decide(observed)
    for one in decision.listed:
        assert one.boot is not None
        assert Outcome.FAILED not in outcomes(one, observed)
        if observed.serving:
            assert one.boot.door is DoorState.OPEN
        else:
            assert is_sound(one, observed)
            assert one.is_open or outcomes(one, observed) == {Outcome.PASSED}


@calmly
@given(observations())
def test_nothing_is_listed_or_opened_before_all_that_was_asked_for_is_proven(observed: Observed) -> None:
    decision = decide(observed)
    if observed.serving:
        return
    if decision.listed or decision.serves or isinstance(decision.step, Admit | ProveFronts):
        assert all(finding.status is ConditionStatus.TRUE for finding in decision.findings[:4])
        for role in observed.roles:
            assert sum(one.pod.role == role.name for one in decision.listed) >= role.replicas
        assert decision.listed == observed.engines
    if isinstance(decision.step, Admit) and all(one.is_open for one in decision.step.engines):
        return  # they were let in before, and are told a cap that is not above theirs
    if decision.serves or isinstance(decision.step, Admit):
        assert observed.known.fronts
        assert {verdict.outcome for verdict in observed.known.fronts} == {Outcome.PASSED}
        assert decision.findings[4].holds
    if decision.serves:
        assert all(one.is_open and one.boot and one.boot.cap == decision.cap for one in observed.engines)


@calmly
@given(observations())
def test_the_cap_is_never_above_the_one_in_force_nor_above_what_was_asked_for(observed: Observed) -> None:
    decision = decide(observed)
    in_force = observed.applied_tokens
    if decision.cap is not None:
        assert isinstance(decision.capacity, Offered)
        assert decision.cap <= observed.spec.context_length.requested_tokens
        assert in_force is None or decision.cap <= in_force
    if decision.step is not None:
        assert decision.step.cap == decision.cap
    if decision.step is not None and observed.serving and observed.status.context_length is not None:
        on_offer = observed.status.context_length.advertised_tokens
        assert not on_offer or decision.step.cap <= on_offer


@calmly
@given(observations())
def test_a_boot_that_failed_or_was_not_judged_is_neither_let_in_nor_tried_again(observed: Observed) -> None:
    for one in told(decide(observed).step):
        seen = outcomes(one, observed)
        assert Outcome.FAILED not in seen
        assert one.is_open or Outcome.NOT_JUDGED not in seen


@calmly
@given(observations())
def test_a_door_that_is_shut_for_good_or_silent_is_told_nothing(observed: Observed) -> None:
    for one in told(decide(observed).step):
        assert one.boot is not None
        assert one.boot.door not in (DoorState.DRAINING, DoorState.TAINTED)


@calmly
@given(observations())
def test_whoever_refused_is_not_told_to_open_again_until_that_is_forgotten(observed: Observed) -> None:
    step = decide(observed).step
    if isinstance(step, Admit):
        assert not [one.name for one in step.engines if nonces(one) in observed.known.refusals]


@calmly
@given(observations())
def test_pairs_are_one_of_each_type_and_every_unproven_one_stands_in_one(observed: Observed) -> None:
    decision = decide(observed)
    step = decision.step
    if step is None or isinstance(step, Admit | ProveFronts):
        return
    assert step.pairs
    for first, second in step.pairs:
        assert (first.type, second.type) == (RoleType.PREFILL, RoleType.DECODE)
        assert is_sound(first, observed)
        assert is_sound(second, observed)
    fit = eligible(observed, decision.capacity)
    new = {one.name for one in fit if not one.is_open and not outcomes(one, observed)}
    assert new <= {one.name for one in told(step)}
    assert len(step.pairs) <= len(observed.engines)
    assert len(set(step.pairs)) == len(step.pairs)


@calmly
@given(observations())
def test_the_same_pool_gives_the_same_decision(observed: Observed) -> None:
    assert decide(observed) == decide(replace(observed, known=replace(observed.known)))


@calmly
@given(observations())
def test_the_listed_stay_in_one_order_so_that_a_file_is_not_written_anew(observed: Observed) -> None:
    assert named(decide(observed).listed) == [one.name for one in observed.engines if one in decide(observed).listed]


@calmly
@given(observations())
def test_when_nothing_goes_on_and_nobody_serves_a_condition_says_why(observed: Observed) -> None:
    decision = decide(observed)
    found = {finding.condition.value: finding for finding in all_conditions(observed, decision)}
    ready = found["Ready"]
    if decision.step is None and not decision.serves:
        assert ready.status is ConditionStatus.FALSE
    if ready.holds:
        assert decision.serves
        assert observed.serving or decision.step is None
    assert found["Reconciling"].holds is not ready.holds
    assert found["Stalled"].holds is (found["Stalled"].reason in NEEDS_A_PERSON)
    for finding in found.values():
        assert finding.message
        assert "  " not in finding.message
        assert len(finding.message) < 2000


@calmly
@given(observations(), st.booleans())
def test_steps_that_work_come_to_an_end_and_each_changes_something(observed: Observed, written: bool) -> None:
    """No step is asked for twice with nothing changed by it, and a handful of steps is all that there is to do."""
    assume(not observed.known.refusals)
    seen = []
    for _ in range(8):
        step = decide(observed).step
        if step is None:
            break
        assert step not in seen
        seen.append(step)
        observed = done(observed, step)
        if written and decide(observed).serves:
            observed = replace(observed, status=PoolStatus(current_revision=REVISION))
    else:
        raise AssertionError(f"no end after {seen}")


@calmly
@given(st.permutations([decode(0), decode(1), prefill(0), prefill(1), prefill(2)]), st.integers(0, 4))
def test_a_sound_pool_is_admitted_whichever_engine_starts_last(order: list[Engine], fresh: int) -> None:
    roles = (Role("decode", RoleType.DECODE, 2), Role("prefill", RoleType.PREFILL, 3))
    seen = Observed(spec(), PoolStatus(), REVISION, roles, tuple(order), routers=(router(),), runs=True)
    steps = []
    while (step := decide(seen).step) is not None:
        steps.append(type(step).__name__)
        seen = done(seen, step)
    assert steps == ["ProvePairs", "ProveFronts", "Admit"]
    assert decide(seen).serves
    assert seen.engines[fresh].is_open
