from __future__ import annotations

from dataclasses import replace

import pytest

from kvfence.domain.asking import Call, Heard
from kvfence.domain.verdicts import Outcome
from kvfence.verify.canary import abort_reuse
from kvfence.verify.canary.session import BudgetSpentError, Known
from kvfence.verify.canary.stand_in import Flaw, Shape
from tests.unit.verify.canary.spoiled import NO_ANSWERS, Spoil, Spoiled, judged, status

LEAKY = (Flaw.ABORT_LEAKS,)


def is_left(call: Call) -> bool:
    return call.hang_up_after is not None


def once_left(change: Spoil) -> Spoil:
    """Change the answers to those who ask once somebody was left."""
    seen: list[Call] = []

    def spoil(call: Call, heard: Heard) -> Heard:
        if is_left(call):
            seen.append(call)
        return change(call, heard) if seen and not is_left(call) else heard

    return spoil


@pytest.mark.parametrize("shape", Shape)
@pytest.mark.parametrize("seed", range(8))
def test_the_words_of_a_request_that_was_left_in_another_s_answer_fail(shape: Shape, seed: int) -> None:
    caller = Spoiled(shape, LEAKY)
    result = judged(abort_reuse, caller, seed=seed)
    assert result.outcome is Outcome.FAILED
    assert "A request got the words of one that its client had left" in result.message
    marker = result.evidence[0].split()[0]
    assert any(marker in str(call.body["prompt"]) for call in caller.calls if is_left(call)), (
        "it is of one that we left"
    )
    assert " of request " in result.evidence[0]


@pytest.mark.parametrize("shape", Shape)
@pytest.mark.parametrize("seed", range(8))
def test_a_sane_server_passes(shape: Shape, seed: int) -> None:
    result = judged(abort_reuse, Spoiled(shape), seed=seed)
    assert result.outcome is Outcome.PASSED
    assert "requests were left while they ran" in result.message
    assert "of the largest pool" in result.message


def test_the_legs_of_a_pair_are_left_together_and_each_alone() -> None:
    caller = Spoiled(Shape.PAIR)
    judged(abort_reuse, caller)
    together: dict[object, set[str]] = {}
    for call in caller.calls:
        legs = together.setdefault(call.body["bootstrap_room"], set())
        if is_left(call):
            legs.add(call.url.removeprefix("http://").partition(".")[0])
    assert {frozenset(legs) for legs in together.values() if legs} == {
        frozenset({"prefill", "decode"}),
        frozenset({"prefill"}),
        frozenset({"decode"}),
    }


def test_no_leg_is_waited_for_that_was_left_by_its_partner() -> None:
    caller = Spoiled(Shape.PAIR)
    assert judged(abort_reuse, caller).outcome is Outcome.PASSED
    staying = [call for call in caller.calls if call.hang_up_after is None and call.body["max_tokens"] > 1]
    assert staying, "some leg stays while the other is left, and is closed when the others have asked"


@pytest.mark.parametrize("shape", [Shape.PAIR, Shape.SERVER])
def test_a_wrong_count_of_ids_afterwards_fails(shape: Shape) -> None:
    def change(call: Call, heard: Heard) -> Heard:
        return heard if isinstance(call.body["prompt"], str) else replace(heard, prompt_tokens=1)

    result = judged(abort_reuse, Spoiled(shape, spoil=once_left(change)))
    assert result.outcome is Outcome.FAILED
    assert "counted 1 tokens" in result.message
    assert "are right" in result.message


def test_legs_that_count_differently_afterwards_fail() -> None:
    def change(call: Call, heard: Heard) -> Heard:
        return (
            replace(heard, prompt_tokens=9) if "decode" in call.url and isinstance(call.body["prompt"], str) else heard
        )

    result = judged(abort_reuse, Spoiled(Shape.PAIR, spoil=once_left(change)))
    assert result.outcome is Outcome.FAILED
    assert "decode counted 9 tokens of the same prompt" in result.message


def test_a_text_that_counts_otherwise_at_the_end_fails() -> None:
    counted: dict[str, int] = {}

    def change(call: Call, heard: Heard) -> Heard:
        text = str(call.body["prompt"])
        counted[text] = counted.get(text, 0) + 1
        return replace(heard, prompt_tokens=3) if counted[text] > 1 else heard

    result = judged(abort_reuse, Spoiled(Shape.ROUTER, spoil=once_left(change)))
    assert result.outcome is Outcome.FAILED
    assert "router counted 3 tokens where" in result.message


@pytest.mark.parametrize(("words", "heard"), NO_ANSWERS.items())
def test_a_server_that_never_answers_again_fails_unless_it_says_why(words: str, heard: Heard) -> None:
    result = judged(abort_reuse, Spoiled(Shape.PAIR, spoil=once_left(lambda _call, _heard: heard)))
    assert result.outcome is (Outcome.NOT_JUDGED if heard.status in (401, 429, 503) else Outcome.FAILED)
    assert words in result.message


def test_a_server_that_answers_again_after_a_while_is_not_judged_by_what_it_did_not_answer() -> None:
    missed: list[Call] = []

    def change(call: Call, heard: Heard) -> Heard:
        missed.append(call)
        return status(500) if len(missed) < 8 else heard

    result = judged(abort_reuse, Spoiled(Shape.PAIR, spoil=once_left(change)))
    assert result.outcome is Outcome.NOT_JUDGED
    assert "got no answer" in result.message
    assert all("answered 500" in line for line in result.evidence)


def test_one_ordinary_answer_of_three_at_the_end_is_enough() -> None:
    ended: list[Call] = []

    def change(call: Call, heard: Heard) -> Heard:
        ended.append(call)
        return status(500) if len(ended) == 8 else heard  # the first of those at the end

    caller = Spoiled(Shape.ROUTER, spoil=once_left(change))
    assert judged(abort_reuse, caller).outcome is Outcome.PASSED
    assert len(ended) == 9


@pytest.mark.parametrize(("words", "heard"), NO_ANSWERS.items())
def test_a_server_that_answers_nothing_before_is_not_judged(words: str, heard: Heard) -> None:
    result = judged(abort_reuse, Spoiled(Shape.PAIR, spoil=lambda _call, _heard: heard))
    assert result.outcome is Outcome.NOT_JUDGED
    assert words in result.message


def test_a_server_that_cannot_be_left_in_time_is_not_judged() -> None:
    def spoil(_call: Call, heard: Heard) -> Heard:
        return replace(heard, hung_up=False, status=200)

    result = judged(abort_reuse, Spoiled(Shape.SERVER, spoil=spoil))
    assert result.outcome is Outcome.NOT_JUDGED
    assert "before we could hang up" in result.message


def test_a_model_that_repeats_nothing_is_not_judged() -> None:
    result = judged(abort_reuse, Spoiled(Shape.PAIR, spoil=lambda _call, heard: replace(heard, text="no")))
    assert result.outcome is Outcome.NOT_JUDGED
    assert "did not repeat" in result.message


@pytest.mark.parametrize("requests", [1, 5, 20, 50, 60])
def test_a_budget_that_runs_out_ends_the_check_and_leaves_no_request_behind(requests: int) -> None:
    with pytest.raises(BudgetSpentError):
        judged(abort_reuse, Spoiled(Shape.PAIR), requests=requests)


def test_no_room_for_a_prompt_is_not_judged() -> None:
    result = judged(abort_reuse, Spoiled(Shape.SERVER), legs=(Known("server", "http://x", kv_pool_tokens=200),))
    assert result.outcome is Outcome.NOT_JUDGED
    assert "There is room for" in result.message
