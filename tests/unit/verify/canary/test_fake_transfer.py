from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kvfence.domain.asking import Call, Heard
from kvfence.domain.verdicts import Outcome
from kvfence.verify import markers
from kvfence.verify.canary import fake_transfer
from kvfence.verify.canary.fake_transfer import FAKE_HOST
from kvfence.verify.canary.session import Known
from kvfence.verify.canary.stand_in import Flaw, Shape
from tests.unit.verify.canary.spoiled import NO_ANSWERS, Spoil, Spoiled, judged, said, status

OPEN = (Flaw.FAKE_TRANSFER_ACCEPTED,)


def is_fake(call: Call) -> bool:
    return call.body.get("bootstrap_host") == FAKE_HOST


def to_fake(change: Callable[[Heard], Heard]) -> Spoil:
    return lambda call, heard: change(heard) if is_fake(call) else heard


@pytest.mark.parametrize("seed", range(10))
def test_decode_that_answers_out_of_the_pages_of_others_fails_and_says_whose_marker_came_out(seed: int) -> None:
    caller = Spoiled(Shape.PAIR, OPEN)
    result = judged(fake_transfer, caller, seed=seed)
    assert result.outcome is Outcome.FAILED
    assert "kvfence-engine" in result.message
    assert [call.url for call in caller.calls if is_fake(call)] == ["http://decode.example/v1/completions"]
    (line, *_) = result.evidence
    marker = line.split()[0]
    assert any(marker in str(call.body["prompt"]) for call in caller.calls), "it is one of ours"
    assert f"{marker} of user A" in line
    assert "came out of what decode answered (200) to try 1 with 2.2.2.2" in line


def test_decode_that_answers_with_something_else_fails_too() -> None:
    caller = Spoiled(Shape.PAIR, OPEN, to_fake(lambda heard: replace(heard, text="harmless words")))
    result = judged(fake_transfer, caller)
    assert result.outcome is Outcome.FAILED
    assert (
        "decode answered 200 to bootstrap_host 2.2.2.2, out of pages to which nothing was transferred" in result.message
    )
    assert "harmless words" not in said(result)


def test_a_pair_that_refuses_passes() -> None:
    result = judged(fake_transfer, Spoiled(Shape.PAIR))
    assert (result.outcome, result.message) == (Outcome.PASSED, "2.2.2.2: decode refused it with 400.")


@pytest.mark.parametrize("code", [400, 403, 422])
def test_any_refusal_of_the_request_itself_passes(code: int) -> None:
    assert judged(fake_transfer, Spoiled(Shape.PAIR, OPEN, to_fake(lambda _: status(code)))).outcome is Outcome.PASSED


def test_a_refusal_that_quotes_another_s_marker_fails() -> None:
    planted: list[str] = []

    def spoil(call: Call, heard: Heard) -> Heard:
        if is_fake(call):
            return status(400, f"not after {planted[0]}")
        planted.append(str(call.body["prompt"])[-markers.LENGTH :])
        return heard

    assert judged(fake_transfer, Spoiled(Shape.PAIR, spoil=spoil)).outcome is Outcome.FAILED


def test_an_error_passes_if_the_pair_goes_on_serving() -> None:
    result = judged(fake_transfer, Spoiled(Shape.PAIR, OPEN, to_fake(lambda _: status(500))))
    assert (result.outcome, result.message) == (Outcome.PASSED, "2.2.2.2: decode answered 500, and goes on serving.")


def test_an_error_after_which_nothing_is_answered_is_not_judged() -> None:
    gone: list[Call] = []

    def spoil(call: Call, heard: Heard) -> Heard:
        if is_fake(call):
            gone.append(call)
        return status(500) if gone else heard

    result = judged(fake_transfer, Spoiled(Shape.PAIR, OPEN, spoil))
    assert result.outcome is Outcome.NOT_JUDGED
    assert "an ordinary question afterwards was not answered as before" in result.message


@pytest.mark.parametrize(("words", "heard"), NO_ANSWERS.items())
@pytest.mark.parametrize("shape", Shape)
def test_what_hides_the_answer_is_not_judged(shape: Shape, words: str, heard: Heard) -> None:
    result = judged(fake_transfer, Spoiled(shape, OPEN, to_fake(lambda _: heard)))
    assert result.outcome is Outcome.NOT_JUDGED
    assert words in result.message


@pytest.mark.parametrize(("words", "heard"), NO_ANSWERS.items())
def test_a_refusal_counts_for_nothing_where_ordinary_questions_are_not_answered(words: str, heard: Heard) -> None:
    result = judged(fake_transfer, Spoiled(Shape.PAIR, spoil=lambda call, was: was if is_fake(call) else heard))
    assert result.outcome is Outcome.NOT_JUDGED
    assert words in result.message


def test_a_model_that_repeats_nothing_is_not_judged() -> None:
    result = judged(fake_transfer, Spoiled(Shape.PAIR, OPEN, lambda _call, heard: replace(heard, text="no")))
    assert result.outcome is Outcome.NOT_JUDGED
    assert "did not repeat" in result.message


def test_a_router_that_overwrites_the_field_passes_with_an_ordinary_answer() -> None:
    result = judged(fake_transfer, Spoiled(Shape.ROUTER))
    assert result.outcome is Outcome.PASSED
    assert "the field changed nothing, the answer was this request's own" in result.message


@pytest.mark.parametrize("seed", range(10))
def test_a_router_that_hands_the_field_on_fails(seed: int) -> None:
    result = judged(fake_transfer, Spoiled(Shape.ROUTER, OPEN), seed=seed)
    assert result.outcome is Outcome.FAILED
    assert "Use a router that overwrites bootstrap_host" in result.message


def test_a_router_that_then_answers_ordinary_questions_wrong_too_is_not_judged() -> None:
    tried: list[Call] = []

    def spoil(call: Call, heard: Heard) -> Heard:
        if is_fake(call):
            tried.append(call)
        return replace(heard, text="another day") if tried else heard

    assert judged(fake_transfer, Spoiled(Shape.ROUTER, spoil=spoil)).outcome is Outcome.NOT_JUDGED


def test_a_server_without_pd_passes_with_its_own_answer() -> None:
    assert judged(fake_transfer, Spoiled(Shape.SERVER, OPEN)).outcome is Outcome.PASSED


def test_decode_alone_that_answers_nothing_but_the_fake_host_fails() -> None:
    caller = Spoiled(Shape.PAIR, OPEN)
    result = judged(fake_transfer, caller, pair=None, legs=(replace(caller.target.legs[1], max_input_tokens=1018),))
    assert result.outcome is Outcome.FAILED
    assert "out of pages to which nothing was transferred" in result.message


def test_prefill_alone_which_answers_one_token_of_its_own_does_not_fail() -> None:
    spoil = to_fake(lambda _: Heard(200, "x", 999, 1, seconds=0.1))
    caller = Spoiled(Shape.PAIR, spoil=spoil)
    result = judged(fake_transfer, caller, pair=None, legs=caller.target.legs[:1])
    assert result.outcome is Outcome.NOT_JUDGED
    assert "A request without the field was not answered" in result.message or "could not be planted" in result.message


def test_no_room_for_a_prompt_is_not_judged() -> None:
    result = judged(fake_transfer, Spoiled(Shape.SERVER), legs=(Known("server", "http://x", context_length=50),))
    assert result.outcome is Outcome.NOT_JUDGED
    assert "There is room for" in result.message
