from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kvfence.domain.asking import Call, Heard
from kvfence.domain.verdicts import Outcome
from kvfence.verify import markers
from kvfence.verify.canary import stream_errors
from kvfence.verify.canary.session import Known
from kvfence.verify.canary.stand_in import Flaw, Shape
from tests.unit.verify.canary.spoiled import (
    MALFORMED,
    NO_ANSWERS,
    TIMED_OUT,
    UNREACHABLE,
    Spoil,
    Spoiled,
    judged,
    said,
    status,
)

LIMIT = 1018
SUCCESS = Heard(200, "", 9, 4, finish_reason="stop", done=True)


def is_good(call: Call) -> bool:
    return str(call.body["prompt"]).endswith(markers.LEAD) and len(call.body["prompt"]) < LIMIT


def to_bad(change: Callable[[Heard], Heard]) -> Spoil:
    return lambda call, heard: heard if is_good(call) else change(heard)


def to_good_streams(change: Callable[[Heard], Heard]) -> Spoil:
    return lambda call, heard: change(heard) if is_good(call) and call.body.get("stream") else heard


@pytest.mark.parametrize("shape", Shape)
def test_a_refused_stream_that_ends_as_a_success_fails(shape: Shape) -> None:
    result = judged(stream_errors, Spoiled(shape, (Flaw.STREAM_ERROR_AS_SUCCESS,)))
    assert result.outcome is Outcome.FAILED
    assert "as a successful answer" in result.message


@pytest.mark.parametrize("which", range(4))
def test_each_malformed_request_that_is_answered_fails(which: int) -> None:
    what, wrong = stream_errors.MALFORMED[which]

    def spoil(call: Call, heard: Heard) -> Heard:
        return SUCCESS if all(call.body[name] == value for name, value in wrong.items()) else heard

    result = judged(stream_errors, Spoiled(Shape.SERVER, spoil=spoil))
    assert (result.outcome, what in result.message) == (Outcome.FAILED, True)


@pytest.mark.parametrize("end", [{"done": False}, {"finish_reason": "length"}, {"finish_reason": None}, {"text": "x"}])
@pytest.mark.parametrize("leg", ["prefill", "decode"])
def test_any_end_that_looks_like_an_answer_fails_on_either_leg(end: dict[str, object], leg: str) -> None:
    heard = replace(SUCCESS, **end)  # type: ignore[arg-type]

    def spoil(call: Call, told: Heard) -> Heard:
        return heard if len(call.body["prompt"]) == LIMIT and leg in call.url else told

    result = judged(stream_errors, Spoiled(Shape.PAIR, spoil=spoil))
    assert (result.outcome, leg.capitalize() in result.message) == (Outcome.FAILED, True)


@pytest.mark.parametrize(
    "heard",
    [
        status(400),
        status(422),
        Heard(200, error="too long", done=True),
        Heard(200, finish_reason="abort", done=True),
        Heard(200, "a", finish_reason="length", error="too long", done=True),
    ],
)
def test_a_4xx_an_error_event_and_an_abort_pass(heard: Heard) -> None:
    assert judged(stream_errors, Spoiled(Shape.SERVER, spoil=to_bad(lambda _: heard))).outcome is Outcome.PASSED


@pytest.mark.parametrize("heard", [status(500), TIMED_OUT])
def test_a_5xx_and_a_stream_that_does_not_end_fail(heard: Heard) -> None:
    assert judged(stream_errors, Spoiled(Shape.SERVER, spoil=to_bad(lambda _: heard))).outcome is Outcome.FAILED


@pytest.mark.parametrize("heard", [status(503), status(404), UNREACHABLE, MALFORMED])
def test_what_says_nothing_is_not_judged(heard: Heard) -> None:
    assert judged(stream_errors, Spoiled(Shape.SERVER, spoil=to_bad(lambda _: heard))).outcome is Outcome.NOT_JUDGED


def test_nothing_is_asked_behind_a_stream_that_hangs_on_a_long_prompt() -> None:
    caller = Spoiled(Shape.PAIR, (Flaw.HANGS_ON_OVERLONG,))
    assert judged(stream_errors, caller).outcome is Outcome.FAILED
    assert sum(len(call.body["prompt"]) >= LIMIT for call in caller.calls) == 2, "one for each leg"


# --- good streams ---


@pytest.mark.parametrize("shape", Shape)
def test_all_is_well_where_a_good_stream_says_what_is_said_without_one(shape: Shape) -> None:
    assert judged(stream_errors, Spoiled(shape)).outcome is Outcome.PASSED


def test_a_good_stream_without_done_fails() -> None:
    result = judged(stream_errors, Spoiled(Shape.SERVER, spoil=to_good_streams(lambda one: replace(one, done=False))))
    assert (result.outcome, "without [DONE]" in result.message) == (Outcome.FAILED, True)


def test_a_good_stream_that_says_something_else_fails_and_is_not_quoted() -> None:
    spoil = to_good_streams(lambda one: replace(one, text="harmless words"))
    result = judged(stream_errors, Spoiled(Shape.SERVER, spoil=spoil))
    assert (result.outcome, "something else" in result.message) == (Outcome.FAILED, True)
    assert "harmless" not in said(result)


def test_a_server_that_never_says_the_same_is_not_judged() -> None:
    said_so_far: list[str] = []

    def spoil(call: Call, heard: Heard) -> Heard:
        said_so_far.append("x")
        return replace(heard, text="".join(said_so_far)) if is_good(call) else heard

    assert judged(stream_errors, Spoiled(Shape.SERVER, spoil=spoil)).outcome is Outcome.NOT_JUDGED


@pytest.mark.parametrize("words", NO_ANSWERS)
def test_a_good_request_without_an_answer_is_not_judged(words: str) -> None:
    result = judged(stream_errors, Spoiled(Shape.SERVER, spoil=lambda _call, _heard: NO_ANSWERS[words]))
    assert (result.outcome, words in result.message) == (Outcome.NOT_JUDGED, True)


def test_where_no_limit_is_told_it_is_not_judged_but_a_failure_is_seen() -> None:
    silent = (Known("server", "http://server.example"),)
    assert judged(stream_errors, Spoiled(Shape.SERVER), legs=silent).outcome is Outcome.NOT_JUDGED
    broken = Spoiled(Shape.SERVER, (Flaw.STREAM_ERROR_AS_SUCCESS,))
    assert judged(stream_errors, broken, legs=silent).outcome is Outcome.FAILED
