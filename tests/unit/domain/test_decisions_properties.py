"""Decisions as properties: whatever is observed, nobody comes in who was not proven, and everything comes to an end."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kvfence.api.v1alpha1.conditions import ConditionStatus
from kvfence.api.v1alpha1.pool import RoleType
from kvfence.api.v1alpha1.status import PoolStatus
from kvfence.domain.capacity import Offered
from kvfence.domain.decisions import Admit, ProveFronts, decide
from kvfence.domain.eligible import eligible
from kvfence.domain.engines import DoorState, Engine
from kvfence.domain.observed import Observed, Role
from kvfence.domain.summary import NEEDS_A_PERSON, all_conditions
from kvfence.domain.verdicts import Outcome
from tests.unit.domain.any_pools import observations
from tests.unit.domain.pools_of_engines import REVISION, decode, done, named, nonces, prefill, router, spec, told

calmly = settings(deadline=None)  # a busy machine is no failure
thoroughly = settings(calmly, max_examples=400)  # where what is looked for is rare among pools


def is_sound(one: Engine, observed: Observed) -> bool:
    """What an engine must be to be proven or let in, said here once more and in other words."""
    said, boot = one.facts, one.boot
    if said is None or boot is None or not one.pod.started or boot.door in ("draining", "tainted") or not boot.ranks:
        return False
    checksum = said.kv_checksum is True or observed.spec.integrity.kv_checksum == "Observe"
    return said.version == "0.5.23" and checksum and said.auto_truncates is False


def outcomes(one: Engine, observed: Observed, cap: int | None) -> set[Outcome]:
    """What checks said about a boot under this cap; that one failed, it said under any."""
    proof = observed.known.proofs.get(nonces(one))
    said = {verdict.outcome for verdict in proof.verdicts} if proof is not None else set()
    return said if proof is not None and proof.cap == cap else said & {Outcome.FAILED}


def takes_more(one: Engine, cap: int) -> bool:
    """Whether an open engine takes more than the cap, or may."""
    return one.boot is not None and one.boot.door is DoorState.OPEN and (one.boot.cap > cap or not one.boot.applied)


def is_heard_by_the_kubelet_alone(one: Engine) -> bool:
    return one.boot is None and one.unheard and one.pod.started and one.pod.ready


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
        assert one.is_open or outcomes(one, observed, decision.step.cap) == {Outcome.PASSED}
        assert one.boot is not None
        for rank in one.boot.ranks:
            assert decision.step.cap <= rank.pool_tokens
            assert decision.step.cap <= rank.boot_input_limit + 6


@thoroughly
@given(observations())
def test_the_router_sends_nothing_to_a_boot_that_is_not_proven_or_not_open(observed: Observed) -> None:
    decision = decide(observed)
    for one in decision.listed:
        if observed.serving and is_heard_by_the_kubelet_alone(one):
            continue
        assert one.boot is not None
        assert Outcome.FAILED not in outcomes(one, observed, decision.cap)
        if observed.serving:
            assert one.boot.door is DoorState.OPEN
        else:
            assert is_sound(one, observed)
            assert one.is_open or outcomes(one, observed, decision.cap) == {Outcome.PASSED}


@thoroughly
@given(observations())
def test_an_open_engine_that_refused_a_lower_cap_is_not_listed_and_nobody_comes_in_beside_it(
    observed: Observed,
) -> None:
    decision = decide(observed)
    if decision.cap is None:
        return
    for one in decision.listed:
        if takes_more(one, decision.cap):
            assert observed.serving
            assert nonces(one) not in observed.known.refusals
    above = [one for one in observed.engines if takes_more(one, decision.cap)]
    if any(Outcome.FAILED not in outcomes(one, observed, decision.cap) for one in above):
        assert decision.step is None or isinstance(decision.step, Admit)
        assert all(one.is_open for one in told(decision.step))


@calmly
@given(observations())
def test_a_serving_pool_loses_only_those_of_which_something_bad_is_known(observed: Observed) -> None:
    """What cannot be asked, a gate that was raised and a status that says otherwise cut nobody off."""
    decision = decide(observed)
    if not observed.serving or any(verdict.outcome is Outcome.FAILED for verdict in observed.known.fronts):
        return
    assert decision.serves
    assert decision.runs
    for one in observed.engines:
        if is_heard_by_the_kubelet_alone(one):
            assert one in decision.listed
        if one.is_open and one not in decision.listed:
            failed = Outcome.FAILED in outcomes(one, observed, decision.cap)
            assert failed or (decision.cap is not None and takes_more(one, decision.cap))


@calmly
@given(observations())
def test_behind_a_front_that_failed_nobody_is_served(observed: Observed) -> None:
    decision = decide(observed)
    if not any(verdict.outcome is Outcome.FAILED for verdict in observed.known.fronts):
        return
    if observed.serving:
        assert (decision.serves, decision.listed, decision.step) == (False, (), None)
        assert decision.findings[4].status is ConditionStatus.FALSE
    elif decision.cap == observed.applied_tokens:
        assert (decision.serves, decision.listed) == (False, ())


@thoroughly
@given(observations())
def test_nobody_new_comes_in_with_another_image_than_those_that_serve(observed: Observed) -> None:
    decision = decide(observed)
    fresh = [one for one in told(decision.step) if not one.is_open and one.pod.image_id]
    first = next((one.pod.image_id for one in observed.engines if one.is_let_in and one.pod.image_id), None)
    assert len({one.pod.image_id for one in fresh}) <= 1
    if first is not None:
        assert {one.pod.image_id for one in fresh} <= {first}


@calmly
@given(observations())
def test_nothing_is_listed_or_opened_before_all_that_was_asked_for_is_proven(observed: Observed) -> None:
    decision = decide(observed)
    if observed.serving:
        return
    if decision.listed or decision.serves or isinstance(decision.step, Admit | ProveFronts):
        assert all(finding.status is ConditionStatus.TRUE for finding in decision.findings[:4])
    if isinstance(decision.step, Admit) and all(one.is_open for one in decision.step.engines):
        return  # they were let in before, and are told a cap that is not above theirs
    if decision.listed or decision.serves or isinstance(decision.step, Admit | ProveFronts):
        for role in observed.roles:
            assert sum(one.pod.role == role.name for one in decision.listed) >= role.replicas
        assert decision.listed == observed.engines
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
    told_users = observed.serving and observed.status.current_revision == REVISION
    if decision.step is not None and told_users and observed.status.context_length is not None:
        on_offer = observed.status.context_length.advertised_tokens
        assert not on_offer or decision.step.cap <= on_offer


@calmly
@given(observations())
def test_a_boot_that_failed_or_was_not_judged_is_neither_let_in_nor_tried_again(observed: Observed) -> None:
    decision = decide(observed)
    for one in told(decision.step):
        seen = outcomes(one, observed, decision.cap)
        assert Outcome.FAILED not in seen
        assert one.is_open or Outcome.NOT_JUDGED not in seen


@thoroughly
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
    new = {one.name for one in fit if not one.is_open and not outcomes(one, observed, decision.cap)}
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
    if found["TrafficAdmitted"].holds:
        assert {one.type for one in decision.listed} == {RoleType.PREFILL, RoleType.DECODE}
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
        if written:
            serves = decide(observed).serves
            status = PoolStatus(current_revision=REVISION if serves else None)
            observed = replace(observed, serving=serves, status=status)
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
