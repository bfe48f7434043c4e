"""An answer is good only if it is exactly what has to come."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from e2e.demo import questions
from e2e.demo.client import Said
from kvfence.verify import markers

MARKER = "ABCDEFGHJKLM"


def said(status: int | None, body: object = None, seconds: float = 0.1, why: str = "") -> Said:
    return Said(status, "" if body is None else json.dumps(body), why, seconds, 0.0)


def completed(text: str, tokens: int) -> dict[str, Any]:
    return {"choices": [{"text": text}], "usage": {"prompt_tokens": tokens}}


@pytest.mark.parametrize(
    ("answer", "good"),
    [
        (said(200, completed(MARKER, 701)), True),
        (said(200, completed(MARKER, 700)), False),
        (said(200, completed("ABCDEFGHJKLX", 701)), False),
        (said(200, completed("", 701)), False),
        (said(500, completed(MARKER, 701)), False),
        (said(200, {"choices": []}), False),
        (said(200, ["nothing"]), False),
        (said(None, why="no connection"), False),
    ],
)
def test_a_marker_has_to_come_back_whole_from_a_prompt_that_was_read_whole(answer: Said, good: bool) -> None:
    asked = questions.judged_marker(answer, MARKER)
    assert asked.good is good
    assert MARKER in asked.wanted


@pytest.mark.parametrize(
    ("answer", "good"),
    [
        (said(400, {"error": {"message": "too long"}}), True),
        (said(413), True),
        (said(400, {"message": "too long"}), True),
        (said(400, {"error": {"message": "too long"}}, seconds=1.2), False),
        (said(500, {"error": {"message": "aborted"}}), False),
        (said(200, completed("x", 1500)), False),
        (said(None, why="no answer in time"), False),
    ],
)
def test_an_over_long_prompt_has_to_be_refused_as_the_clients_mistake_and_at_once(answer: Said, good: bool) -> None:
    assert questions.judged_refusal(answer, 1500).good is good


@pytest.mark.parametrize(
    ("answer", "good"),
    [(said(200, completed("x", 996)), True), (said(200, completed("x", 1)), False), (said(400), False)],
)
def test_the_longest_prompt_has_to_be_answered_and_counted(answer: Said, good: bool) -> None:
    assert questions.judged_longest(answer, 996).good is good


@pytest.mark.parametrize(
    ("answer", "good"),
    [
        (said(200, {"data": [{"max_model_len": 1003}]}), True),
        (said(200, {"data": [{"max_model_len": 4096}]}), False),
        (said(200, {"data": []}), False),
        (said(200, {"data": ["x"]}), False),
        (said(404, {"data": [{"max_model_len": 1003}]}), False),
    ],
)
def test_the_list_of_models_has_to_have_the_cap(answer: Said, good: bool) -> None:
    assert questions.judged_models(answer, 1003).good is good


def test_what_is_asked_has_the_lengths_that_it_is_said_to_have() -> None:
    bodies: list[dict[str, Any] | None] = []

    def ask(path: str, body: dict[str, Any] | None) -> Said:
        assert path == ("/v1/models" if body is None else "/v1/completions")
        bodies.append(body)
        return said(500)

    asked = questions.ask_all(ask, "tiny", 1003, random.Random(0))
    prompts = [body["prompt"] for body in bodies if body]
    assert [len(prompt) + 1 for prompt in prompts] == [701, 996, 997, 1500]
    assert prompts[0].endswith(markers.LEAD)
    assert not any(one.good for one in asked)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "too long"}}, "too long"),
        ({"message": "too long"}, "too long"),
        (
            {"error": {"message": 'Prefill server error: {"error": {"message": "too long"}}'}},
            "Prefill server error: too long",
        ),
        ({"error": {"message": "a {brace} of its own"}}, "a {brace} of its own"),
        ({"error": "oops"}, "-"),
        ([], "-"),
    ],
)
def test_a_refusal_is_shown_in_the_engines_own_words_also_behind_a_routers(body: object, words: str) -> None:
    assert questions.judged_refusal(said(400, body), 1500).came == words
