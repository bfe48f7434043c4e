from __future__ import annotations

from dataclasses import replace

import pytest

from kvfence.domain.asking import Call, Heard
from kvfence.domain.verdicts import Outcome
from kvfence.verify.canary import prompt_tokens
from kvfence.verify.canary.session import Known
from kvfence.verify.canary.stand_in import Flaw, Shape
from tests.unit.verify.canary.spoiled import NO_ANSWERS, Spoiled, judged


@pytest.mark.parametrize("shape", Shape)
def test_a_count_that_is_rounded_fails(shape: Shape) -> None:
    assert judged(prompt_tokens, Spoiled(shape, (Flaw.WRONG_COUNT,))).outcome is Outcome.FAILED


@pytest.mark.parametrize("off", [-1, 1])
@pytest.mark.parametrize("leg", ["prefill", "decode"])
def test_a_count_that_is_off_by_one_at_one_length_fails_on_either_leg(leg: str, off: int) -> None:
    def spoil(call: Call, heard: Heard) -> Heard:
        is_it = len(call.body["prompt"]) == 257 and leg in call.url
        return replace(heard, prompt_tokens=257 + off) if is_it else heard

    result = judged(prompt_tokens, Spoiled(Shape.PAIR, spoil=spoil))
    assert result.outcome is Outcome.FAILED
    assert "a prompt of 257 tokens" in result.message
    assert str(257 + off) in result.message


def test_a_stub_is_called_one() -> None:
    def spoil(call: Call, heard: Heard) -> Heard:
        return replace(heard, prompt_tokens=1) if len(call.body["prompt"]) > 500 else heard

    result = judged(prompt_tokens, Spoiled(Shape.SERVER, spoil=spoil))
    assert (result.outcome, "stub" in result.message) == (Outcome.FAILED, True)


def test_a_text_that_is_cut_counts_less_than_shorter_ones_foretold() -> None:
    def spoil(_call: Call, heard: Heard) -> Heard:
        return replace(heard, prompt_tokens=min(heard.prompt_tokens or 0, 600))

    result = judged(prompt_tokens, Spoiled(Shape.ROUTER, spoil=spoil))
    assert (result.outcome, "counted 600 tokens" in result.message) == (Outcome.FAILED, True)


@pytest.mark.parametrize("shape", Shape)
def test_right_counts_pass_at_the_borders_of_pages_and_next_to_the_limit(shape: Shape) -> None:
    caller = Spoiled(shape)
    assert judged(prompt_tokens, caller).outcome is Outcome.PASSED
    added = shape is Shape.ROUTER  # whose texts have a begin token
    asked = {len(call.body["prompt"]) + added for call in caller.calls}
    assert {15, 16, 17, 31, 32, 33, 79, 80, 81, 1014} <= asked


@pytest.mark.parametrize("shape", Shape)
def test_a_server_that_does_not_count_is_not_judged(shape: Shape) -> None:
    caller = Spoiled(shape, spoil=lambda _call, heard: replace(heard, prompt_tokens=None))
    assert judged(prompt_tokens, caller).outcome is Outcome.NOT_JUDGED


@pytest.mark.parametrize("words", NO_ANSWERS)
@pytest.mark.parametrize("shape", [Shape.SERVER, Shape.ROUTER])
def test_what_is_no_answer_is_not_judged(words: str, shape: Shape) -> None:
    result = judged(prompt_tokens, Spoiled(shape, spoil=lambda _call, _heard: NO_ANSWERS[words]))
    assert (result.outcome, words in result.message) == (Outcome.NOT_JUDGED, True)


def test_a_server_that_tells_nothing_gets_short_prompts() -> None:
    caller = Spoiled(Shape.SERVER)
    assert judged(prompt_tokens, caller, legs=(Known("server", "http://server.example"),)).outcome is Outcome.PASSED
    assert max(len(call.body["prompt"]) for call in caller.calls) == 500
