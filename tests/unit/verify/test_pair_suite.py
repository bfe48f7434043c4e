from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kvfence.domain.verdicts import Outcome
from kvfence.verify import isolation, markers
from kvfence.verify.pair_suite import passes_needed, prove_pair
from tests.unit.verify.stub_pair import (
    LIMITS,
    OK,
    PASSED,
    SUBJECT,
    Spoil,
    StubPair,
    both,
    is_planted,
    is_too_long,
    leaking,
    leaking_later,
    on_decode,
    outcomes,
    proven,
    refusal,
    when,
)


def test_a_pair_that_works_passes_both_checks_without_words() -> None:
    verdicts, _ = proven()
    assert outcomes(verdicts) == PASSED
    assert {(verdict.subject, verdict.message) for verdict in verdicts.values()} == {("pod a with pod b", "")}


def test_each_question_has_its_own_pass_and_room_and_all_announced_passes_are_used() -> None:
    _, pair = proven()
    shown = [question.pass_ for question in pair.asked]
    assert len(shown) == len(set(shown)) == passes_needed(LIMITS)
    assert len(set(pair.rooms)) == len(pair.rooms)
    assert {question.model for question in pair.asked} == {"tiny"}


@pytest.mark.parametrize("cap", [200, 1003, 4096, 100_000])
def test_what_runs_at_the_same_time_fits_into_half_of_the_cap(cap: int) -> None:
    _, pair = proven(limits=replace(LIMITS, cap=cap, requested_tokens=cap, prefill_pool=cap, decode_pool=cap * 4))
    planted = [question for question in pair.asked if is_planted(question)]
    assert pair.most_at_once == len(planted) >= 2
    together = sum(len(question.prompt) + 1 + question.max_tokens for question in planted)
    assert together <= cap // 2


@pytest.mark.parametrize("page_size", [1, 16, 64])
def test_prompts_at_the_same_time_fill_their_last_page_to_different_degrees(page_size: int) -> None:
    characters = isolation.sizes(replace(LIMITS, cap=4096, page_size=page_size))
    assert len(set(characters)) == isolation.AT_ONCE
    if page_size > 1:
        assert len({one % page_size for one in characters}) == isolation.AT_ONCE


def test_the_passes_must_suffice() -> None:
    pair = StubPair(LIMITS.cap, {"one"})
    with pytest.raises(ValueError, match="fewer passes than questions"):
        asyncio.run(prove_pair(pair, SUBJECT, LIMITS, iter(["one"]), random.Random(7)))


# --- words ---


def broken_in_every_way() -> Iterator[Any]:
    yield leaking()
    yield leaking_later(lambda answer, said: on_decode(answer, text=said))
    yield when(lambda *_: True, lambda _: both(replace(OK, text="LEAKED-TEXT")))
    yield when(lambda *_: True, lambda _: both(replace(refusal(500), detail="LEAKED-TEXT")))
    yield when(is_too_long, lambda _: both(replace(OK, text="LEAKED-TEXT")))


@pytest.mark.parametrize("spoil", list(broken_in_every_way()))
def test_no_prompt_answer_or_marker_stands_in_a_message(spoil: Spoil) -> None:
    verdicts, pair = proven(spoil)
    assert any(verdict.outcome is not Outcome.PASSED for verdict in verdicts.values())
    words = " ".join(verdict.message for verdict in verdicts.values())
    assert SUBJECT.name in words
    assert "LEAKED" not in words
    assert "pass-" not in words
    for question in pair.asked:
        if isinstance(question.prompt, str):
            assert question.prompt[-60:] not in words
            marker = question.prompt.partition(markers.LEAD)[2][: markers.LENGTH]
            assert not markers.found(words, [marker] if len(marker) == markers.LENGTH else [])
