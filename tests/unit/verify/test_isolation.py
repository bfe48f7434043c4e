from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kvfence.domain.asking import Answer, Fault, PairAnswer, Question
from kvfence.domain.verdicts import Check, Outcome, Verdict
from tests.unit.verify.stub_pair import (
    LIMITS,
    Spoil,
    both,
    is_asking,
    is_planted,
    leaking,
    leaking_later,
    on_decode,
    on_prefill,
    outcomes,
    proven,
    refusal,
    when,
)


def isolation_of(spoil: Spoil) -> Verdict:
    return proven(spoil)[0][Check.MARKER_ISOLATION]


def test_another_s_marker_in_an_answer_fails() -> None:
    verdict = isolation_of(leaking())
    assert verdict.outcome is Outcome.FAILED
    assert "decode answered with the marker of another request" in verdict.message
    assert "Do not let anyone in" in verdict.message


def test_both_its_own_and_another_s_marker_fails() -> None:
    seen: list[str] = []

    def spoil(question: Question, _tokens: int, answer: PairAnswer) -> PairAnswer:
        if is_planted(question):
            seen.append(answer.decode.text)
            return on_decode(answer, text=answer.decode.text + seen[0])
        return answer

    assert isolation_of(spoil).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    "where",
    [
        pytest.param(lambda answer, said: on_decode(answer, text=said), id="decode's text"),
        pytest.param(lambda answer, said: on_prefill(answer, text=said), id="prefill's text"),
        pytest.param(
            lambda answer, said: on_decode(answer, status=500, text="", fault=Fault.STATUS, detail=said),
            id="the words of an error",
        ),
    ],
)
def test_a_marker_that_comes_out_when_nobody_says_one_fails(where: Callable[[PairAnswer, str], PairAnswer]) -> None:
    verdict = isolation_of(leaking_later(where))
    assert verdict.outcome is Outcome.FAILED
    assert "the marker of another request" in verdict.message


def test_legs_that_count_differently_fail() -> None:
    stand_in = when(lambda question, _: is_planted(question), lambda answer: on_prefill(answer, prompt_tokens=1))
    verdict = isolation_of(stand_in)
    assert verdict.outcome is Outcome.FAILED
    assert "prefill counted 1 tokens of a prompt, and decode " in verdict.message


def test_decode_that_answers_what_prefill_refused_fails() -> None:
    refused = when(
        lambda question, _: is_planted(question),
        lambda answer: replace(answer, prefill=refusal(400)),
    )
    verdict = isolation_of(refused)
    assert verdict.outcome is Outcome.FAILED
    assert "decode answered 200 to a prompt that prefill refused with 400" in verdict.message


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (refusal(503), "prefill answered 503"),
        (Answer(None, "", None, 60.0, Fault.TIMED_OUT), "prefill had not answered in time"),
        (Answer(None, "", None, 0.1, Fault.UNREACHABLE), "prefill could not be reached"),
        (Answer(200, "", None, 0.1, Fault.MALFORMED), "prefill gave an answer that is no completion"),
        (Answer(200, "", None, 0.1, Fault.TOO_LARGE), "prefill gave an answer that is too large"),
    ],
)
@pytest.mark.parametrize("which", [is_planted, is_asking])
def test_errors_are_not_judged(broken: Answer, words: str, which: Callable[[Question], bool]) -> None:
    verdict = isolation_of(when(lambda question, _: which(question), lambda _answer: both(broken)))
    assert verdict.outcome is Outcome.NOT_JUDGED
    assert words in verdict.message


def test_a_leak_outweighs_an_error_of_another_request() -> None:
    leak = leaking()
    first = [True]

    def spoil(question: Question, tokens: int, answer: PairAnswer) -> PairAnswer:
        answer = leak(question, tokens, answer)
        if first and is_planted(question):
            first.clear()
            return both(refusal(500))
        return answer

    assert isolation_of(spoil).outcome is Outcome.FAILED


def test_a_model_that_does_not_repeat_is_not_judged_and_says_what_to_look_at() -> None:
    verdict = isolation_of(when(lambda question, _: is_planted(question), lambda answer: on_decode(answer, text="no")))
    assert verdict.outcome is Outcome.NOT_JUDGED
    assert "weights, data type and tokenizer" in verdict.message


def test_a_cap_without_room_for_two_markers_is_not_judged() -> None:
    verdicts, _ = proven(limits=replace(LIMITS, cap=100))
    assert outcomes(verdicts) == {
        Check.MARKER_ISOLATION: Outcome.NOT_JUDGED,
        Check.OVERLONG_PROMPT: Outcome.PASSED,
    }
    assert "a cap of 100 tokens leaves no room" in verdicts[Check.MARKER_ISOLATION].message
