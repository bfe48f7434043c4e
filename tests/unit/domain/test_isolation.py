"""Who is proven with whom, and what the condition IsolationVerified says of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvfence.api.v1alpha1.conditions import ConditionStatus
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.domain.eligible import eligible, pairs_to_prove
from kvfence.domain.engines import DoorState, Engine
from kvfence.domain.isolation import isolation_verified
from kvfence.domain.observed import Known, Observed, Proof
from kvfence.domain.pools import capacity
from kvfence.domain.verdicts import Check, Outcome, Verdict
from tests.unit.domain.pools_of_engines import (
    CAP,
    FAILED,
    FRONT_FAILED,
    FRONT_PASSED,
    NOT_JUDGED,
    PASSED,
    decode,
    exchanged,
    nonces,
    pool,
    prefill,
    proven,
    restarted,
    serving,
    starting,
    with_door,
)

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN


def pairs(observed: Observed) -> list[tuple[str, str]]:
    found = pairs_to_prove(observed, eligible(observed, capacity(observed)), CAP)
    return [(one.name, other.name) for one, other in found]


NEW = restarted(prefill(0))
PAIRS: dict[str, tuple[Observed, list[tuple[str, str]]]] = {
    "two and one": (pool(), [("prefill-0", "decode-0"), ("prefill-1", "decode-0")]),
    "one and two": (
        pool(prefill(0), decode(0), decode(1)),
        [("prefill-0", "decode-0"), ("prefill-0", "decode-1")],
    ),
    "three and two": (
        pool(prefill(0), prefill(1), prefill(2), decode(0), decode(1)),
        [("prefill-0", "decode-0"), ("prefill-1", "decode-1"), ("prefill-2", "decode-0")],
    ),
    "all are proven": (proven(pool()), []),
    "all are open": (serving(), []),
    "one new boot beside an open and a proven partner": (
        proven(exchanged(serving(prefill(0), decode(0), decode(1)), NEW, restarted(decode(0))), restarted(decode(0))),
        [("prefill-0", "decode-1")],
    ),
    "one new boot with a partner that is proven and not open yet": (
        proven(exchanged(pool(), NEW), decode(0), prefill(1)),
        [("prefill-0", "decode-0")],
    ),
    "no partner at all": (pool(prefill(0)), []),
    "the only partner failed": (proven(pool(), decode(0), verdicts=FAILED), []),
    "the only partner was not judged": (proven(pool(), decode(0), verdicts=NOT_JUDGED), []),
    "one that passed one check and failed another": (
        proven(pool(), prefill(0), verdicts=(*PASSED, *FAILED)),
        [("prefill-1", "decode-0")],
    ),
    "one whose checks said nothing at all": (
        proven(pool(), prefill(0), verdicts=()),
        [("prefill-0", "decode-0"), ("prefill-1", "decode-0")],
    ),
    "one that passed under another cap is proven again": (
        proven(proven(pool()), prefill(0), cap=CAP + 1),
        [("prefill-0", "decode-0")],
    ),
    "one that passed under a lower cap is too": (proven(proven(pool()), decode(0), cap=8), [("prefill-0", "decode-0")]),
    "one that was not judged under another cap is tried under this one": (
        proven(proven(pool()), prefill(0), verdicts=NOT_JUDGED, cap=CAP + 1),
        [("prefill-0", "decode-0")],
    ),
    "one that failed under another cap has failed": (
        proven(pool(), prefill(0), verdicts=FAILED, cap=CAP + 1),
        [("prefill-1", "decode-0")],
    ),
}


@pytest.mark.parametrize("what", PAIRS)
def test_each_new_boot_is_proven_once_with_a_sound_partner(what: str) -> None:
    observed, expected = PAIRS[what]
    assert pairs(observed) == expected


def said(
    observed: Observed, engines: tuple[Engine, ...] | None = None, fronts: tuple[Verdict, ...] = ()
) -> tuple[ConditionStatus, Reason, str]:
    finding = isolation_verified(observed, observed.engines if engines is None else engines, fronts, CAP)
    return finding.status, finding.reason, finding.message


def test_what_a_check_saw_is_said_once_in_its_own_words() -> None:
    failed = proven(pool(), prefill(0), decode(0), verdicts=FAILED)
    assert said(failed) == (
        FALSE,
        Reason.CHECK_FAILED,
        "MarkerIsolation: a pair: a marker crossed. Let nobody in.",
    )
    late = proven(pool(), verdicts=NOT_JUDGED)
    assert said(late) == (UNKNOWN, Reason.CHECK_NOT_JUDGED, "MarkerIsolation: a pair: no answer. It is tried again.")
    both = proven(late, prefill(1), verdicts=FAILED)
    assert said(both)[1] is Reason.CHECK_FAILED


def test_how_far_the_proofs_are_is_counted() -> None:
    assert said(pool())[2] == "0 of 3 engines are proven with marker prompts and over-long prompts."
    assert said(proven(pool(), prefill(0)))[2].startswith("1 of 3 engines")
    assert said(replace(pool(), engines=()), ())[:2] == (UNKNOWN, Reason.PROVING)
    assert said(proven(pool())) == (
        UNKNOWN,
        Reason.PROVING,
        "All 3 engines are proven. The front comes next.",
    )
    assert said(proven(pool()), fronts=FRONT_PASSED) == (
        TRUE,
        Reason.ISOLATION_PROVEN,
        "All 3 engines and the front are proven.",
    )
    assert said(proven(pool()), fronts=FRONT_FAILED) == (
        FALSE,
        Reason.CHECK_FAILED,
        "FrontDoor: the front: /workers is there. Look.",
    )


def test_what_passed_under_another_cap_is_no_proof_and_what_failed_stays_failed() -> None:
    other = CAP + 1
    assert said(proven(pool(), cap=other), fronts=FRONT_PASSED)[:2] == (UNKNOWN, Reason.PROVING)
    assert isolation_verified(proven(pool()), pool().engines, FRONT_PASSED, CAP).holds, "the control"
    assert not isolation_verified(proven(pool()), pool().engines, FRONT_PASSED, other).holds
    assert not isolation_verified(proven(pool()), pool().engines, FRONT_PASSED, None).holds
    assert said(proven(pool(), prefill(0), verdicts=FAILED, cap=other))[:2] == (FALSE, Reason.CHECK_FAILED)


def test_a_front_that_failed_while_it_serves_is_said() -> None:
    assert said(serving(), fronts=FRONT_PASSED)[0] is TRUE
    assert said(serving(), fronts=FRONT_FAILED)[:2] == (FALSE, Reason.CHECK_FAILED)


def test_no_engine_is_no_proof() -> None:
    assert not isolation_verified(replace(pool(), engines=()), (), FRONT_PASSED, CAP).holds
    assert not isolation_verified(replace(serving(), engines=()), (), FRONT_PASSED, CAP).holds


def test_while_it_serves_new_boots_are_counted_beside() -> None:
    assert said(serving())[2] == "All 3 engines that are let in are proven."
    fresh = exchanged(serving(), NEW)
    assert said(fresh)[2] == "All 2 engines that are let in are proven. 1 new boots are being proven."
    assert said(proven(fresh, NEW, verdicts=FAILED))[:2] == (FALSE, Reason.CHECK_FAILED)


def test_old_words_about_an_open_boot_and_about_one_that_is_no_more_do_not_count() -> None:
    assert said(proven(serving(), verdicts=NOT_JUDGED))[0] is TRUE
    gone = replace(serving(), known=Known(proofs={("gone",): Proof(CAP, FAILED)}))
    assert said(gone)[0] is TRUE


def test_a_message_does_not_grow_with_the_pool() -> None:
    engines = tuple(prefill(number) for number in range(100))
    told = {
        nonces(one): Proof(CAP, (Verdict(Check.OVERLONG_PROMPT, Outcome.FAILED, one.name, f"{one.name}: answered."),))
        for one in engines
    }
    _, _, message = said(replace(pool(*engines), known=Known(proofs=told)))
    assert message.endswith("And 97 more.")
    assert len(message) < 300


@pytest.mark.parametrize("door", [DoorState.TAINTED, DoorState.DRAINING])
def test_a_door_that_is_shut_for_good_is_nobodys_partner(door: DoorState) -> None:
    shut = exchanged(pool(), with_door(decode(0), door))
    assert pairs(shut) == []
    assert [one.name for one in eligible(shut, capacity(shut))] == ["prefill-0", "prefill-1"]


def test_one_that_has_not_started_is_nobodys_partner() -> None:
    assert pairs(exchanged(serving(), NEW, starting(decode(0)))) == []


def test_the_words_of_a_check_that_failed_stay_when_its_doors_are_shut_for_good() -> None:
    failed = proven(pool(), verdicts=FAILED)
    shut = exchanged(failed, *(with_door(one, DoorState.TAINTED) for one in failed.engines))
    finding = isolation_verified(shut, (), (), 1003)
    assert (finding.status, finding.reason) == (ConditionStatus.FALSE, Reason.CHECK_FAILED)
    assert FAILED[0].message in finding.message or FAILED[-1].message in finding.message
