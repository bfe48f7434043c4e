from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kvfence.domain.asking import Call, Heard
from kvfence.domain.verdicts import Outcome
from kvfence.verify.canary import pair_identity
from kvfence.verify.canary.stand_in import Flaw, Shape
from tests.unit.verify.canary.spoiled import NO_ANSWERS, Spoil, Spoiled, judged, said


def is_reference(call: Call) -> bool:
    return "reference" in call.url


def tokens(call: Call) -> int:
    return len(call.body["prompt"]) + 1  # the begin


def is_probe(call: Call) -> bool:
    """Whether it only says how long a text is."""
    return bool(call.body["max_tokens"] == 1)


def of(which: Callable[[Call], bool], change: Callable[[Heard], Heard]) -> Spoil:
    return lambda call, heard: change(heard) if which(call) else heard


def wavering(which: Callable[[Call], bool] = lambda _: True, at: int = 0) -> Spoil:
    """A reference whose second answer to each prompt differs from the first from a place on."""
    asked: dict[str, int] = {}

    def spoil(call: Call, heard: Heard) -> Heard:
        if not is_reference(call) or is_probe(call) or not which(call):
            return heard
        prompt = str(call.body["prompt"])
        asked[prompt] = asked.get(prompt, 0) + 1
        return replace(heard, text=heard.text[:at] + "①②③"[asked[prompt] - 1] + heard.text[at:])

    return spoil


@pytest.mark.parametrize("shape", [Shape.PAIR, Shape.ROUTER])
@pytest.mark.parametrize("seed", range(8))
def test_a_decode_that_misses_the_last_page_fails_and_nothing_of_an_answer_is_shown(shape: Shape, seed: int) -> None:
    caller = Spoiled(shape, (Flaw.PAIR_DIFFERS,))
    result = judged(pair_identity, caller, seed=seed)
    assert result.outcome is Outcome.FAILED
    assert "differs from the reference's, which gives its own each time, from character " in result.message
    assert "the same again when it is asked once more" in result.message
    shown = {str(call.body["prompt"]).partition("SECRET-")[2][:6] for call in caller.calls} - {""}
    assert shown
    assert not any(marker in said(result) for marker in shown)


@pytest.mark.parametrize("shape", [Shape.PAIR, Shape.ROUTER])
@pytest.mark.parametrize("seed", range(8))
def test_a_pair_that_answers_as_the_reference_passes(shape: Shape, seed: int) -> None:
    result = judged(pair_identity, Spoiled(shape), seed=seed)
    assert result.outcome is Outcome.PASSED
    assert "answers were the same as the reference's" in result.message


def test_no_reference_is_not_judged_and_costs_nothing() -> None:
    caller = Spoiled(Shape.SERVER)
    result = judged(pair_identity, caller)
    assert result.outcome is Outcome.NOT_JUDGED
    assert "--reference" in result.message
    assert not caller.calls


@pytest.mark.parametrize("shape", [Shape.PAIR, Shape.ROUTER])
def test_prompts_stand_around_the_border_of_a_page_and_go_to_the_limit(shape: Shape) -> None:
    caller = Spoiled(shape)
    assert judged(pair_identity, caller).outcome is Outcome.PASSED
    asked = [(tokens(call), call.body["max_tokens"]) for call in caller.calls if not is_probe(call)]
    reference = len(caller.target.legs) + 2
    assert asked[::reference] == [(62, 36), (64, 36), (64, 36), (256, 36), (256, 36), (256, 36), (1016, 4), (1016, 4)]


def test_a_marker_stands_at_the_end_in_the_middle_and_at_the_beginning() -> None:
    caller = Spoiled(Shape.PAIR)
    judged(pair_identity, caller)
    texts = {str(call.body["prompt"]) for call in caller.calls if tokens(call) == 256}
    places = sorted(text.index(" SECRET-") for text in texts)
    assert len(places) == 3
    assert places[0] < 10
    assert 80 < places[1] < 120
    assert places[2] > 200


@pytest.mark.parametrize("wanted", [62, 64, 256, 1016])
def test_a_difference_at_one_length_alone_fails(wanted: int) -> None:
    def which(call: Call) -> bool:
        return tokens(call) == wanted and "decode" in call.url and not is_probe(call)

    result = judged(pair_identity, Spoiled(Shape.PAIR, spoil=of(which, lambda heard: replace(heard, text="!"))))
    assert result.outcome is Outcome.FAILED
    assert f"a prompt of {wanted - 1} characters ({wanted} tokens)" in result.message


def test_a_target_that_counts_unevenly_is_not_judged() -> None:
    counts = iter(range(3, 1000, 7))
    result = judged(
        pair_identity, Spoiled(Shape.PAIR, spoil=lambda _call, heard: replace(heard, prompt_tokens=next(counts)))
    )
    assert result.outcome is Outcome.NOT_JUDGED
    assert "could not be measured" in result.message


def test_no_room_for_a_marker_is_not_judged() -> None:
    caller = Spoiled(Shape.PAIR)
    legs = tuple(replace(leg, max_input_tokens=30) for leg in caller.target.legs)
    result = judged(pair_identity, caller, legs=legs)
    assert (result.outcome, result.message) == (Outcome.NOT_JUDGED, pair_identity.NO_ROOM)


def test_the_position_is_that_of_the_first_difference() -> None:
    late = of(lambda call: "decode" in call.url, lambda heard: replace(heard, text=heard.text[:7] + "~~~~"))
    assert "from character 8 on; it has 11 " in judged(pair_identity, Spoiled(Shape.PAIR, spoil=late)).message


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda heard: replace(heard, text=heard.text[:-1]), id="an answer that ends early"),
        pytest.param(lambda heard: replace(heard, text=heard.text + "x"), id="an answer that goes on"),
    ],
)
def test_an_answer_of_another_length_fails(change: Callable[[Heard], Heard]) -> None:
    spoil = of(lambda call: "decode" in call.url, change)
    assert judged(pair_identity, Spoiled(Shape.PAIR, spoil=spoil)).outcome is Outcome.FAILED


def test_a_difference_that_is_gone_when_asked_again_fails_and_says_so() -> None:
    asked: list[Call] = []

    def spoil(call: Call, heard: Heard) -> Heard:
        if "decode" not in call.url or is_probe(call):
            return heard
        asked.append(call)
        return replace(heard, text="~") if len(asked) == 1 else heard

    result = judged(pair_identity, Spoiled(Shape.PAIR, spoil=spoil))
    assert result.outcome is Outcome.FAILED
    assert "another when asked once more" in result.message


def test_another_count_of_tokens_fails() -> None:
    spoil = of(
        lambda call: "prefill" in call.url and tokens(call) == 62, lambda heard: replace(heard, prompt_tokens=12)
    )
    result = judged(pair_identity, Spoiled(Shape.PAIR, spoil=spoil))
    assert result.outcome is Outcome.FAILED
    assert "prefill counted 12 tokens, and the reference 62" in result.message


def test_a_count_that_is_not_told_is_no_difference() -> None:
    spoil = of(lambda call: is_reference(call) and not is_probe(call), lambda heard: replace(heard, prompt_tokens=None))
    assert judged(pair_identity, Spoiled(Shape.PAIR, spoil=spoil)).outcome is Outcome.PASSED


def test_a_reference_that_never_answers_twice_the_same_is_not_judged() -> None:
    result = judged(pair_identity, Spoiled(Shape.PAIR, (Flaw.PAIR_DIFFERS,), wavering()))
    assert result.outcome is Outcome.NOT_JUDGED
    assert "does not answer the same prompt twice in the same way" in result.message


def test_prompts_on_which_the_reference_wavers_are_left_out() -> None:
    short = wavering(lambda call: tokens(call) == 62)
    result = judged(pair_identity, Spoiled(Shape.PAIR, spoil=short))
    assert result.outcome is Outcome.PASSED
    assert "and 1 that the reference answered in two ways" in result.message


def test_a_difference_behind_the_place_where_the_reference_wavers_is_tolerated_and_one_before_it_fails() -> None:
    late = wavering(at=5)
    assert judged(pair_identity, Spoiled(Shape.PAIR, spoil=late)).outcome is Outcome.PASSED

    waver = wavering(at=5)

    def spoil(call: Call, heard: Heard) -> Heard:
        return replace(heard, text="~~~~~~~~") if "decode" in call.url else waver(call, heard)

    assert judged(pair_identity, Spoiled(Shape.PAIR, spoil=spoil)).outcome is Outcome.FAILED


def test_a_reference_that_wavers_when_it_is_asked_a_third_time_is_left_out() -> None:
    asked: dict[str, int] = {}

    def spoil(call: Call, heard: Heard) -> Heard:
        if is_probe(call):
            return heard
        if not is_reference(call):
            return replace(heard, text="~") if "decode" in call.url else heard
        prompt = str(call.body["prompt"])
        asked[prompt] = asked.get(prompt, 0) + 1
        return replace(heard, text="?" if asked[prompt] > 2 else "an answer")

    assert judged(pair_identity, Spoiled(Shape.PAIR, spoil=spoil)).outcome is Outcome.NOT_JUDGED
    assert set(asked.values()) == {3}


@pytest.mark.parametrize(("words", "heard"), NO_ANSWERS.items())
@pytest.mark.parametrize("who", ["prefill", "decode", "reference"])
def test_no_answer_is_not_judged(who: str, words: str, heard: Heard) -> None:
    def which(call: Call) -> bool:
        return who in call.url and not is_probe(call)

    result = judged(pair_identity, Spoiled(Shape.PAIR, spoil=of(which, lambda _: heard)))
    assert result.outcome is Outcome.NOT_JUDGED
    assert f"{who} {words}" in result.message


@pytest.mark.parametrize(("words", "heard"), NO_ANSWERS.items())
@pytest.mark.parametrize("who", ["decode", "reference"])
def test_no_answer_to_a_question_about_lengths_is_not_judged(who: str, words: str, heard: Heard) -> None:
    result = judged(pair_identity, Spoiled(Shape.PAIR, spoil=of(lambda call: who in call.url, lambda _: heard)))
    assert result.outcome is Outcome.NOT_JUDGED
    assert who == "decode" or f"reference {words}" in result.message
