from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from kvfence.domain.asking import Call, Heard
from kvfence.domain.verdicts import Outcome
from kvfence.verify import markers
from kvfence.verify.canary import overlong_prompt
from kvfence.verify.canary.copying import Words
from kvfence.verify.canary.session import Budget, Known, Session
from kvfence.verify.canary.stand_in import Flaw, Shape, StandIn
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


def tokens(call: Call) -> int:
    prompt = call.body["prompt"]
    return len(prompt) + isinstance(prompt, str)


def to_overlong(change: Callable[[Heard], Heard], leg: str = "") -> Spoil:
    return lambda call, heard: change(heard) if tokens(call) >= LIMIT and leg in call.url else heard


def to_fitting(change: Callable[[Heard], Heard], leg: str = "") -> Spoil:
    """Of those at the edge, which are ids."""
    return lambda call, heard: (
        change(heard)
        if tokens(call) < LIMIT and leg in call.url and not isinstance(call.body["prompt"], str)
        else heard
    )


# --- the incident ---


@pytest.mark.parametrize("shape", Shape)
@pytest.mark.parametrize("seed", range(5))
def test_stale_pages_fail_and_it_is_said_whose_marker_came_out_of_whose_answer(shape: Shape, seed: int) -> None:
    caller = Spoiled(shape, (Flaw.STALE_PAGES,))
    result = judged(overlong_prompt, caller, seed=seed)
    assert result.outcome is Outcome.FAILED
    line = result.evidence[0]
    marker = line.split()[0]
    assert any(str(call.body["prompt"]).count(marker) > 2 for call in caller.calls), "a user A planted it"
    assert f"{marker} of user A" in line
    assert "answered (200) to user B" in line
    assert "a text of 1110 tokens" in line
    assert line in result.message


class Busy(Spoiled):
    """Takes eight seconds for what is too long, without anybody waiting."""

    async def send(self, call: Call, seconds: float) -> Heard:
        heard = await super().send(call, seconds)
        if tokens(call) < LIMIT:
            return heard
        return replace(heard, seconds=8.0) if seconds >= 8.0 else TIMED_OUT


def test_a_leak_that_is_slower_than_a_refusal_may_be_is_still_told_by_its_marker() -> None:
    result = judged(overlong_prompt, Busy(Shape.PAIR, (Flaw.STALE_PAGES,)))
    assert result.outcome is Outcome.FAILED
    assert "of user A" in result.message


@pytest.mark.parametrize("seed", range(5))
def test_a_prompt_that_prefill_cuts_fails_with_the_marker_that_came_out(seed: int) -> None:
    result = judged(overlong_prompt, Spoiled(Shape.PAIR, (Flaw.CUT_PROMPT,)), seed=seed)
    assert result.outcome is Outcome.FAILED
    assert "where it is cut" in result.message
    assert "of user A" in result.message


def test_status_200_from_both_legs_with_the_right_count_and_no_marker_fails_where_nobody_can_hold_it() -> None:
    def spoil(call: Call, heard: Heard) -> Heard:
        return Heard(200, "harmless words", tokens(call), 4) if tokens(call) >= LIMIT else heard

    result = judged(overlong_prompt, Spoiled(Shape.PAIR, spoil=spoil))
    assert result.outcome is Outcome.FAILED
    assert "answered 200 where it had to refuse" in result.message
    assert "harmless" not in said(result)


@pytest.mark.parametrize("shape", Shape)
def test_a_leg_that_hangs_fails_and_nothing_is_asked_behind_it(shape: Shape) -> None:
    caller = Spoiled(shape, (Flaw.HANGS_ON_OVERLONG,))
    result = judged(overlong_prompt, caller)
    assert result.outcome is Outcome.FAILED
    assert "did not refuse within 5 s" in result.message
    assert len({str(call.body["prompt"]) for call in caller.calls if tokens(call) >= LIMIT}) == 1


@pytest.mark.parametrize(
    ("heard", "words"),
    [
        (status(500), "answered 500 where it had to refuse with a 4xx"),
        (Heard(400, error="no", seconds=30.0), "did not refuse within 5 s"),
        (TIMED_OUT, "did not refuse within 5 s"),
        (Heard(200, "x", 1100), "answered 200 where it had to refuse"),
        (MALFORMED, "answered 200 where it had to refuse"),
    ],
)
@pytest.mark.parametrize("shape", [Shape.SERVER, Shape.ROUTER])
def test_what_is_no_refusal_at_once_fails(heard: Heard, words: str, shape: Shape) -> None:
    result = judged(overlong_prompt, Spoiled(shape, spoil=to_overlong(lambda _: heard)))
    assert result.outcome is Outcome.FAILED
    assert words in result.message


@pytest.mark.parametrize("heard", [status(503), status(404), UNREACHABLE])
def test_what_says_nothing_about_the_length_is_not_judged(heard: Heard) -> None:
    assert (
        judged(overlong_prompt, Spoiled(Shape.PAIR, spoil=to_overlong(lambda _: heard))).outcome is Outcome.NOT_JUDGED
    )


def test_a_marker_in_a_refusal_fails() -> None:
    planted: list[str] = []

    def spoil(call: Call, heard: Heard) -> Heard:
        prompt = str(call.body["prompt"])
        if prompt.count(markers.LEAD) > 3:
            planted.append(prompt[-markers.LENGTH :])
        return replace(heard, error=f"no: {planted[0]}") if tokens(call) >= LIMIT else heard

    result = judged(overlong_prompt, Spoiled(Shape.SERVER, spoil=spoil))
    assert result.outcome is Outcome.FAILED
    assert f"{planted[0]} of user A1" in result.message


# --- prompts that fit ---


@pytest.mark.parametrize("leg", ["prefill", "decode"])
def test_a_wrong_count_fails_on_either_leg(leg: str) -> None:
    change = to_fitting(lambda heard: replace(heard, prompt_tokens=1), leg)
    result = judged(overlong_prompt, Spoiled(Shape.PAIR, spoil=change))
    assert result.outcome is Outcome.FAILED
    assert "counted" in result.message


def test_one_wrong_count_on_both_legs_fails_too() -> None:
    change = to_fitting(lambda heard: replace(heard, prompt_tokens=1))
    result = judged(overlong_prompt, Spoiled(Shape.PAIR, spoil=change))
    assert (result.outcome, "counted 1 tokens" in result.message) == (Outcome.FAILED, True)


@pytest.mark.parametrize(("leg", "other"), [("prefill", "decode"), ("decode", "prefill")])
def test_a_leg_that_refuses_what_the_other_answers_fails(leg: str, other: str) -> None:
    result = judged(overlong_prompt, Spoiled(Shape.PAIR, spoil=to_fitting(lambda _: status(400), leg)))
    assert result.outcome is Outcome.FAILED
    assert other in result.message.lower()


def test_a_server_that_does_not_count_is_not_judged() -> None:
    change = to_fitting(lambda heard: replace(heard, prompt_tokens=None))
    assert judged(overlong_prompt, Spoiled(Shape.SERVER, spoil=change)).outcome is Outcome.NOT_JUDGED


def test_a_prompt_that_fits_and_is_not_answered_is_not_judged() -> None:
    for words, heard in NO_ANSWERS.items():
        result = judged(overlong_prompt, Spoiled(Shape.SERVER, spoil=to_fitting(lambda _, heard=heard: heard)))  # type: ignore[misc]
        assert result.outcome is Outcome.NOT_JUDGED, words


def test_a_server_that_refuses_all_is_not_judged() -> None:
    result = judged(overlong_prompt, Spoiled(Shape.SERVER, spoil=to_fitting(lambda _: status(400))))
    assert (result.outcome, "all were refused" in result.message) == (Outcome.NOT_JUDGED, True)


# --- where all is well ---


@pytest.mark.parametrize("shape", Shape)
def test_it_passes_and_the_edges_were_asked(shape: Shape) -> None:
    caller = Spoiled(shape)
    result = judged(overlong_prompt, caller)
    assert result.outcome is Outcome.PASSED
    assert {*range(LIMIT - 2, LIMIT + 3), 4095, 4096, 4097} <= {tokens(call) for call in caller.calls}


def test_texts_of_another_tokenizer_are_measured() -> None:
    """Behind a router that takes no ids, with a model of one token per word."""

    def outcome(*flaws: Flaw) -> tuple[Outcome, str]:
        stand_in = StandIn(Shape.ROUTER, frozenset(flaws), Words())
        session = Session(stand_in, stand_in.target, Budget(1000, 10**7, 0), random.Random(1))
        result = asyncio.run(overlong_prompt.check(session))
        return result.outcome, result.message

    assert outcome()[0] is Outcome.PASSED
    assert outcome(Flaw.STALE_PAGES)[0] is Outcome.FAILED
    assert outcome(Flaw.HANGS_ON_OVERLONG)[0] is Outcome.FAILED


def test_a_large_pool_is_not_said_to_be_full_of_markers() -> None:
    big = Known("server", "http://server.example", 681_280, 4096, LIMIT)
    result = judged(overlong_prompt, Spoiled(Shape.SERVER), legs=(big,))
    assert (result.outcome, "small part of the largest pool" in result.message) == (Outcome.PASSED, True)


# --- what is not known ---


def test_of_a_target_that_tells_nothing_nothing_is_said() -> None:
    result = judged(overlong_prompt, Spoiled(Shape.SERVER), legs=(Known("server", "http://server.example"),))
    assert result.outcome is Outcome.NOT_JUDGED
    assert "no edge is known" in result.message


@pytest.mark.parametrize(("flaws", "outcome"), [((), Outcome.NOT_JUDGED), ((Flaw.STALE_PAGES,), Outcome.FAILED)])
def test_where_the_context_alone_is_told_a_leak_is_seen_and_nothing_is_promised(
    flaws: tuple[Flaw, ...], outcome: Outcome
) -> None:
    assert judged(overlong_prompt, Spoiled(Shape.ROUTER, flaws), engines=()).outcome is outcome


def test_markers_that_cannot_be_planted_are_said() -> None:
    def spoil(call: Call, heard: Heard) -> Heard:
        return status(503) if str(call.body["prompt"]).count(markers.LEAD) > 3 else heard

    result = judged(overlong_prompt, Spoiled(Shape.SERVER, spoil=spoil))
    assert (result.outcome, "could not be planted" in result.message) == (Outcome.NOT_JUDGED, True)


def test_a_marker_that_comes_out_while_others_are_planted_fails() -> None:
    planted: list[str] = []

    def spoil(call: Call, heard: Heard) -> Heard:
        prompt = str(call.body["prompt"])
        if prompt.count(markers.LEAD) < 3:
            return heard
        planted.append(prompt[-markers.LENGTH :])
        return replace(heard, text=planted[0])

    result = judged(overlong_prompt, Spoiled(Shape.SERVER, spoil=spoil))
    assert result.outcome is Outcome.FAILED
    assert f"{planted[0]} of user A1" in result.message
