from __future__ import annotations

from dataclasses import replace

import pytest

from kvfence.domain.asking import Call, Heard
from kvfence.domain.verdicts import Outcome
from kvfence.verify import markers
from kvfence.verify.canary import marker_isolation
from kvfence.verify.canary.session import Known
from kvfence.verify.canary.stand_in import Flaw, Shape
from tests.unit.verify.canary.spoiled import NO_ANSWERS, Spoiled, judged, said

CROSSED = (Flaw.CROSSED_ANSWERS,)


def own(call: Call) -> str:
    """The marker that stands in a prompt; empty when it asks only."""
    _, lead, behind = str(call.body["prompt"]).partition(markers.LEAD)
    return behind[: markers.LENGTH] if lead and behind else ""


@pytest.mark.parametrize("shape", Shape)
@pytest.mark.parametrize("seed", range(5))
def test_crossed_answers_fail_and_it_is_said_whose_marker_came_out_of_whose_answer(shape: Shape, seed: int) -> None:
    caller = Spoiled(shape, CROSSED)
    result = judged(marker_isolation, caller, seed=seed)
    assert result.outcome is Outcome.FAILED
    line = result.evidence[0]
    marker = line.split()[0]
    assert marker in {own(call) for call in caller.calls}, "it is one of ours"
    assert f"{marker} of user A" in line
    assert "came out of what" in line
    assert "answered (200) to user A" in line
    assert line in result.message


def test_a_marker_in_the_answer_to_who_says_none_fails() -> None:
    seen: list[str] = []

    def spoil(call: Call, heard: Heard) -> Heard:
        if marker := own(call):
            seen.append(marker)
            return heard
        return replace(heard, text=f"so {seen[0]}")

    result = judged(marker_isolation, Spoiled(Shape.SERVER, spoil=spoil))
    assert result.outcome is Outcome.FAILED
    assert f"{seen[0]} of user A1" in result.message
    assert "to user A5" in result.message


@pytest.mark.parametrize("leg", ["prefill", "decode"])
def test_a_marker_in_the_words_of_an_error_fails_on_either_leg(leg: str) -> None:
    seen: list[str] = []

    def spoil(call: Call, heard: Heard) -> Heard:
        seen.append(own(call))
        return heard if own(call) or leg not in call.url else replace(heard, error=f"bad request {seen[0]}")

    result = judged(marker_isolation, Spoiled(Shape.PAIR, spoil=spoil))
    assert result.outcome is Outcome.FAILED
    assert f"came out of what {leg} answered" in result.message


def test_a_marker_of_an_earlier_round_counts() -> None:
    seen: list[str] = []

    def spoil(call: Call, heard: Heard) -> Heard:
        seen.append(own(call))
        return replace(heard, text=heard.text + seen[0]) if len(seen) > 20 else heard

    result = judged(marker_isolation, Spoiled(Shape.SERVER, spoil=spoil))
    assert result.outcome is Outcome.FAILED
    assert f"{seen[0]} of user A1" in result.message


@pytest.mark.parametrize("shape", Shape)
def test_where_all_is_well_all_rounds_are_asked_and_it_passes(shape: Shape) -> None:
    caller = Spoiled(shape)
    result = judged(marker_isolation, caller)
    assert result.outcome is Outcome.PASSED
    asked = {str(call.body["prompt"]) for call in caller.calls if own(call)}
    assert len(asked) == 4 * marker_isolation.ROUNDS


def test_a_model_that_does_not_repeat_is_not_judged() -> None:
    result = judged(marker_isolation, Spoiled(Shape.PAIR, spoil=lambda _, heard: replace(heard, text="the old castle")))
    assert result.outcome is Outcome.NOT_JUDGED
    assert "did not repeat" in result.message
    assert "the old castle" not in said(result)


def test_a_leak_counts_more_than_a_model_that_does_not_repeat() -> None:
    seen: list[str] = []

    def spoil(call: Call, heard: Heard) -> Heard:
        seen.append(own(call))
        return replace(heard, text=seen[0] if len(seen) == 4 else "...")

    assert judged(marker_isolation, Spoiled(Shape.SERVER, spoil=spoil)).outcome is Outcome.FAILED


def test_decode_that_answers_what_prefill_refused_fails() -> None:
    def spoil(call: Call, heard: Heard) -> Heard:
        return replace(heard, status=400) if "prefill" in call.url else heard

    assert judged(marker_isolation, Spoiled(Shape.PAIR, spoil=spoil)).outcome is Outcome.FAILED


@pytest.mark.parametrize("words", NO_ANSWERS)
def test_what_is_no_answer_is_not_judged(words: str) -> None:
    result = judged(marker_isolation, Spoiled(Shape.SERVER, spoil=lambda _call, _heard: NO_ANSWERS[words]))
    assert result.outcome is Outcome.NOT_JUDGED
    assert words in result.message


def test_a_server_without_room_is_not_judged() -> None:
    tiny = (Known("server", "http://server.example", 64, 64, 58),)
    assert judged(marker_isolation, Spoiled(Shape.SERVER), legs=tiny).outcome is Outcome.NOT_JUDGED


def test_a_server_that_tells_nothing_is_judged_all_the_same() -> None:
    silent = (Known("server", "http://server.example"),)
    caller = Spoiled(Shape.SERVER)
    result = judged(marker_isolation, caller, legs=silent)
    assert result.outcome is Outcome.PASSED, result
