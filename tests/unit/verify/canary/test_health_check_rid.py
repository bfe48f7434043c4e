from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kvfence.domain.asking import Call, Heard
from kvfence.domain.verdicts import Outcome
from kvfence.verify.canary import health_check_rid
from kvfence.verify.canary.session import Known
from kvfence.verify.canary.stand_in import Flaw, Shape
from kvfence.verify.markers import LEAD, LENGTH
from tests.unit.verify.canary.spoiled import (
    NO_ANSWERS,
    TIMED_OUT,
    Spoiled,
    judged,
    said,
    status,
    with_field,
    without_field,
)

TAKEN = (Flaw.HEALTH_RID_ACCEPTED,)


@pytest.mark.parametrize("shape", [Shape.PAIR, Shape.ROUTER])
def test_a_name_of_a_health_check_that_is_taken_where_there_is_pd_fails(shape: Shape) -> None:
    result = judged(health_check_rid, Spoiled(shape, TAKEN))
    assert result.outcome is Outcome.FAILED
    assert "A client may name its request HEALTH_CHECK...: the KV checksum" in result.message
    assert "kvfence-engine" in result.message
    assert any("status 200, with its own marker" in line for line in result.evidence)


@pytest.mark.parametrize("shape", Shape)
def test_a_refusal_passes(shape: Shape) -> None:
    result = judged(health_check_rid, Spoiled(shape))
    assert result.outcome is Outcome.PASSED
    assert result.message.startswith("Refused by ")


@pytest.mark.parametrize("leg", ["prefill", "decode"])
def test_one_leg_that_takes_it_is_enough_to_fail(leg: str) -> None:
    def spoil(call: Call, heard: Heard) -> Heard:
        return status(400) if "rid" in call.body and leg not in call.url else heard

    result = judged(health_check_rid, Spoiled(Shape.PAIR, TAKEN, spoil))
    assert result.outcome is Outcome.FAILED
    assert {line.split(",")[0] for line in result.evidence} == {leg}


def test_every_name_is_one_of_its_own_and_begins_as_sglang_s() -> None:
    caller = Spoiled(Shape.PAIR)
    judged(health_check_rid, caller)
    names = [call.body["rid"] for call in caller.calls if "rid" in call.body]
    assert len(names) == 2 * len(set(names)) == 4
    assert all(name.startswith("HEALTH_CHECK_") for name in names)


def test_a_server_without_pd_may_answer_it() -> None:
    result = judged(health_check_rid, Spoiled(Shape.SERVER, TAKEN))
    assert result.outcome is Outcome.PASSED
    assert "without PD" in result.message


def test_a_router_before_servers_without_pd_may_answer_it() -> None:
    servers = (Known("server", "http://a"), Known("server", "http://b"))
    assert judged(health_check_rid, Spoiled(Shape.ROUTER, TAKEN), engines=servers).outcome is Outcome.PASSED


def test_a_router_of_whose_engines_nothing_is_known_is_not_judged() -> None:
    result = judged(health_check_rid, Spoiled(Shape.ROUTER, TAKEN), engines=())
    assert result.outcome is Outcome.NOT_JUDGED
    assert "ask a pair of them directly" in result.message


@pytest.mark.parametrize(
    ("versions", "outcome"),
    [
        (("0.5.19", "0.5.19"), Outcome.NOT_JUDGED),
        (("0.5.20", "0.5.21"), Outcome.FAILED),
        (("0.5.19", None), Outcome.FAILED),
        (("0.5.19", "soon"), Outcome.FAILED),
        ((None, None), Outcome.FAILED),
    ],
)
def test_only_releases_that_have_no_checksum_are_not_judged(versions: tuple[str | None, ...], outcome: Outcome) -> None:
    caller = Spoiled(Shape.PAIR, TAKEN)
    legs = tuple(replace(leg, version=version) for leg, version in zip(caller.target.legs, versions, strict=True))
    assert judged(health_check_rid, caller, legs=legs).outcome is outcome


@pytest.mark.parametrize(("words", "heard"), NO_ANSWERS.items())
@pytest.mark.parametrize("shape", Shape)
def test_what_is_neither_an_answer_nor_a_refusal_is_not_judged(shape: Shape, words: str, heard: Heard) -> None:
    result = judged(health_check_rid, Spoiled(shape, TAKEN, with_field("rid", lambda _: heard)))
    assert result.outcome is Outcome.NOT_JUDGED
    assert words in result.message
    assert "drops such requests while it is busy" in result.message


@pytest.mark.parametrize(("words", "heard"), NO_ANSWERS.items())
def test_a_refusal_counts_for_nothing_where_ordinary_names_are_not_answered(words: str, heard: Heard) -> None:
    result = judged(health_check_rid, Spoiled(Shape.PAIR, spoil=without_field("rid", lambda _: heard)))
    assert result.outcome is Outcome.NOT_JUDGED
    assert words in result.message


@pytest.mark.parametrize("answer", [None, status(400)])
def test_one_try_that_a_busy_engine_drops_hides_no_answer_and_is_no_refusal(answer: Heard | None) -> None:
    tried: list[Call] = []

    def spoil(call: Call, heard: Heard) -> Heard:
        if "rid" not in call.body:
            return heard
        tried.append(call)
        return TIMED_OUT if len(tried) == 1 else answer or heard

    result = judged(health_check_rid, Spoiled(Shape.ROUTER, TAKEN, spoil))
    assert result.outcome is (Outcome.FAILED if answer is None else Outcome.NOT_JUDGED)


def crossing(where: Callable[[Heard, str], Heard]) -> Spoiled:
    """Give the marker of the first request to those with the name of a health check."""
    first: list[str] = []

    def spoil(call: Call, heard: Heard) -> Heard:
        first.append(str(call.body["prompt"])[len(LEAD) : len(LEAD) + LENGTH])
        return where(heard, first[0]) if "rid" in call.body else heard

    return Spoiled(Shape.ROUTER, spoil=spoil)


@pytest.mark.parametrize(
    "where",
    [
        pytest.param(lambda heard, marker: replace(heard, text=marker), id="an answer"),
        pytest.param(lambda _, marker: status(400, f"not as {marker} did"), id="the words of an error"),
    ],
)
def test_another_s_marker_fails_and_is_shown(where: Callable[[Heard, str], Heard]) -> None:
    result = judged(health_check_rid, crossing(where))
    assert result.outcome is Outcome.FAILED
    assert "of request 0 came out of what router answered" in said(result)
