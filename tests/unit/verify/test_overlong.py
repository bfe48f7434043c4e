from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from kvfence.domain.asking import Answer, Fault, Pair, PairAnswer, Question
from kvfence.domain.verdicts import Check, Outcome, Verdict
from kvfence.verify import markers, overlong
from kvfence.verify.pair_suite import Limits, passes_needed, prove_pair
from tests.unit.verify.stub_pair import (
    LIMITS,
    LONGEST,
    OK,
    SUBJECT,
    Spoil,
    StubPair,
    both,
    is_planted,
    is_too_long,
    on_decode,
    on_prefill,
    proven,
    refusal,
    when,
)


def overlong_of(spoil: Spoil, limits: Limits = LIMITS) -> Verdict:
    return proven(spoil, limits)[0][Check.OVERLONG_PROMPT]


def test_the_edges_of_cap_pools_and_request_are_asked_for() -> None:
    _, pair = proven()
    lengths = [len(question.prompt) for question in pair.asked if isinstance(question.prompt, tuple)]
    assert lengths[:3] == [17, LONGEST - 2, LONGEST]
    assert set(lengths[3:]) == {
        *(LONGEST + 1, LONGEST + 2),
        *range(1016, 1021),  # around what prefill would take by itself: its pool of 1,024 less 6
        2560,  # what only decode's pool holds
        *range(4088, 4093),
        *range(4094, 4099),
    }


@pytest.mark.parametrize("cap", [8, 60, 1003, 4096, 1_048_576])
@pytest.mark.parametrize("pools", [(1024, 4096), (2_000_000, 10_000_000), (10_000_000, 900_000)])
def test_few_prompts_are_long_and_none_is_longer_than_needed(cap: int, pools: tuple[int, int]) -> None:
    limits = Limits(cap, max(cap, 4096), *pools, page_size=64)
    accepted, refused = overlong.accepted_lengths(limits), overlong.refused_lengths(limits)
    assert 1 <= len(accepted) <= 3
    assert accepted[-1] == limits.longest
    assert accepted[0] <= 65
    assert 2 <= len(refused) <= 18
    assert limits.longest < min(refused)
    assert max(refused) <= limits.requested_tokens + 2


def test_no_two_prompts_of_tokens_are_the_same_and_all_are_bytes_of_any_vocabulary() -> None:
    _, pair = proven()
    prompts = [question.prompt for question in pair.asked if isinstance(question.prompt, tuple)]
    assert len({prompt[:16] for prompt in prompts}) == len(prompts), "what begins alike is cached"
    assert {token for prompt in prompts for token in prompt} <= set(range(217, 256))


@pytest.mark.parametrize("longest", [1, 996, 10_000])
def test_the_over_long_text_has_too_many_numbers_for_any_tokenizer(longest: int) -> None:
    text = overlong.too_long_text(longest, random.Random(1))
    numbers = text.removesuffix(markers.LEAD).split(" ")
    assert len(numbers) == longest + 1
    assert all(len(number) == 1 and number.isdecimal() for number in numbers)
    assert text.endswith(markers.LEAD)


# --- prompts that fit ---


def fits(_question: Question, tokens: int) -> bool:
    return isinstance(_question.prompt, tuple) and tokens <= LONGEST


@pytest.mark.parametrize("leg", [on_prefill, on_decode])
def test_a_wrong_count_fails(leg: Callable[..., PairAnswer]) -> None:
    verdict = overlong_of(when(lambda _, tokens: tokens == LONGEST, lambda answer: leg(answer, prompt_tokens=1)))
    assert verdict.outcome is Outcome.FAILED
    assert f"a prompt of {LONGEST} tokens, which fits: " in verdict.message
    assert "counted 1 tokens" in verdict.message or "and decode 1." in verdict.message


def test_a_count_that_is_wrong_on_both_legs_fails_too() -> None:
    def short(answer: PairAnswer) -> PairAnswer:
        return on_prefill(on_decode(answer, prompt_tokens=900), prompt_tokens=900)

    verdict = overlong_of(when(lambda _, tokens: tokens == LONGEST, short))
    assert (verdict.outcome, "counted 900 tokens" in verdict.message) == (Outcome.FAILED, True)


@pytest.mark.parametrize(
    "broken",
    [refusal(400), refusal(500), refusal(503), Answer(None, "", None, 60.0, Fault.TIMED_OUT)],
)
def test_a_prompt_that_fits_and_is_not_answered_is_not_judged(broken: Answer) -> None:
    verdict = overlong_of(when(fits, lambda _: both(broken)))
    assert verdict.outcome is Outcome.NOT_JUDGED
    assert "a prompt of 17 tokens, which fits: prefill " in verdict.message


def test_decode_that_answers_a_prompt_which_fits_and_prefill_refused_fails() -> None:
    verdict = overlong_of(when(fits, lambda answer: replace(answer, prefill=refusal(400))))
    assert verdict.outcome is Outcome.FAILED


# --- prompts that do not fit ---


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (OK, "answered 200 where it had to refuse"),
        (Answer(200, "", None, 0.1, Fault.MALFORMED), "answered 200 where it had to refuse"),
        (Answer(206, "", None, 0.1, Fault.STATUS), "answered 206 where it had to refuse"),
        (refusal(500), "answered 500 where it had to refuse with a 4xx"),
        (refusal(502), "answered 502 where it had to refuse with a 4xx"),
        (refusal(400, seconds=5.5), "did not refuse within 5 s"),
        (Answer(None, "", None, 4.99, Fault.TIMED_OUT), "did not refuse within 5 s"),
        (Answer(400, "", None, 4.99, Fault.TIMED_OUT), "did not refuse within 5 s"),
    ],
)
@pytest.mark.parametrize("leg", ["prefill", "decode"])
@pytest.mark.parametrize("length", [LONGEST + 1, 1018, 2560, 4096])
def test_a_leg_that_does_not_refuse_at_once_fails(broken: Answer, words: str, leg: str, length: int) -> None:
    verdict = overlong_of(when(lambda _, tokens: tokens == length, lambda answer: replace(answer, **{leg: broken})))
    assert verdict.outcome is Outcome.FAILED
    assert f"a prompt of {length} tokens, which does not fit: {leg} {words}" in verdict.message
    assert "0.5.20 and older" in verdict.message


def test_a_text_that_is_too_long_must_be_refused_too() -> None:
    def is_text(question: Question, tokens: int) -> bool:
        return isinstance(question.prompt, str) and tokens > LONGEST

    verdict = overlong_of(when(is_text, lambda _: both(OK)))
    assert verdict.outcome is Outcome.FAILED
    assert f"a text of more than {LONGEST} tokens, which does not fit: prefill answered 200" in verdict.message
    assert ", and decode answered 200" in verdict.message


def test_a_marker_in_an_answer_to_an_over_long_prompt_is_named_before_the_status() -> None:
    seen: list[str] = []

    def spoil(question: Question, tokens: int, answer: PairAnswer) -> PairAnswer:
        if is_planted(question):
            seen.append(answer.decode.text)
        return both(replace(OK, text=f"x{seen[1]}")) if is_too_long(question, tokens) else answer

    verdict = overlong_of(spoil)
    assert verdict.outcome is Outcome.FAILED
    assert "answered with the marker of another request" in verdict.message


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (refusal(503), "answered 503"),
        (refusal(404), "answered 404"),
        (refusal(429), "answered 429"),
        (refusal(307), "answered 307, which says nothing about the length"),
        (Answer(None, "", None, 0.1, Fault.UNREACHABLE), "could not be reached"),
        (Answer(None, "", None, 0.1, Fault.MALFORMED), "gave an answer that is no completion"),
    ],
)
def test_what_says_nothing_about_the_length_is_not_judged(broken: Answer, words: str) -> None:
    verdict = overlong_of(when(is_too_long, lambda answer: replace(answer, decode=broken)))
    assert verdict.outcome is Outcome.NOT_JUDGED
    assert words in verdict.message


def test_a_hanging_pair_is_left_after_the_first_prompt() -> None:
    hanging = Answer(None, "", None, 5.0, Fault.TIMED_OUT)
    _, pair = proven(when(is_too_long, lambda answer: replace(answer, decode=hanging)))
    assert sum(len(question.prompt) > LONGEST for question in pair.asked) == 1


def test_refusals_get_five_seconds_and_a_text_more_by_its_length() -> None:
    limits: list[float | None] = []

    class Timed(StubPair):
        async def ask(self, pair: Pair, question: Question, room: int, seconds: float | None = None) -> PairAnswer:
            if len(question.prompt) > 100_000:
                limits.append(seconds)
            return await super().ask(pair, question, room, seconds)

    wanted = Limits(200_007, 200_007, 300_000, 300_000, 64)
    passes = [str(i) for i in range(passes_needed(wanted))]
    asyncio.run(prove_pair(Timed(wanted.cap, set(passes)), SUBJECT, wanted, iter(passes), random.Random(7)))
    accepted, text, refused = limits[:2], limits[2], limits[3:]
    assert (accepted, text, set(refused)) == ([None, None], 7.0, {5.0})
