"""What the demo does not let pass: an answer before the proof, silence after it, a cap that is not the pool's."""

from __future__ import annotations

import io
from datetime import datetime
from pathlib import Path

import pytest
from rich.console import Console

from e2e.demo import playing, questions, scene
from e2e.demo.client import Said
from e2e.demo.playing import NotSeenError, Play, counted
from e2e.demo.telling import Teller
from e2e.demo.view import view
from tests.unit.demo.api_objects import CONDITIONS, SINCE, pods, pool
from tests.unit.demo.test_cli import ground

PROVEN = datetime.fromisoformat(SINCE).timestamp()
REFUSED = Said(None, "", "no connection", 0.0, PROVEN - 30)


class Client:
    def __init__(self, *said: Said) -> None:
        self.said = list(said)

    def ask(self, path: str, body: object = None) -> Said:
        return self.said.pop(0) if len(self.said) > 1 else self.said[0]


class Knocked:
    def __init__(self, *said: Said) -> None:
        self.said, self.error, self.is_over = list(said), None, True


@pytest.fixture
def play(tmp_path: Path) -> Play:
    teller = Teller(Console(file=io.StringIO(), force_terminal=False))
    made = Play(teller, ground(tmp_path), scene.read(scene.EXAMPLE, "demo", "make demo-down"))
    made.view = view(pool(*CONDITIONS), pods(ready=True))
    return made


def shown(play: Play) -> str:
    file = play.teller.console.file
    assert isinstance(file, io.StringIO)
    return " ".join(file.getvalue().split())


def answered(at: float) -> Said:
    return Said(200, "{}", "", 0.1, at)


def test_an_answer_after_the_proof_is_told_with_what_came_before(play: Play) -> None:
    play._judge([REFUSED, REFUSED, answered(PROVEN + 0.5)])
    assert "was asked 3 times. Until now nobody was answered (2 x no connection)" in shown(play)


def test_an_answer_before_the_proof_is_no_success(play: Play) -> None:
    with pytest.raises(NotSeenError, match=r"answered 2\.0 s before the pool was proven"):
        play._judge([REFUSED, answered(PROVEN - 2.0)])


def test_a_pool_that_says_it_is_admitted_and_answers_nobody_is_no_success(play: Play) -> None:
    with pytest.raises(NotSeenError, match="answers nobody; the last: no connection"):
        play._hear_the_first_answer(Knocked(REFUSED))  # type: ignore[arg-type]


def test_a_pool_with_another_cap_than_a_new_one_would_have_is_not_asked(play: Play) -> None:
    changed = pool(*CONDITIONS)
    changed["status"]["contextLength"]["advertisedTokens"] = 512
    play.view = view(changed, pods(ready=True))
    with pytest.raises(NotSeenError, match="offers 512 tokens, and a new one would offer 1,003"):
        play.asking(Client(REFUSED))  # type: ignore[arg-type]


def test_one_wrong_answer_is_enough_to_fail_and_is_named(play: Play) -> None:
    with pytest.raises(NotSeenError, match="1,500 tokens: 4xx in less than 1 s was to come") as caught:
        play.asking(Client(REFUSED))  # type: ignore[arg-type]
    assert "GET /v1/models: max_model_len 1003 was to come" in str(caught.value)
    assert "no connection" in shown(play)


def test_what_came_instead_of_answers_is_counted() -> None:
    unknown = Said(None, "", "no such Service yet", 0.0, 0.0)
    late = Said(503, "", "", 0.0, 0.0)
    assert counted([unknown, REFUSED, REFUSED, late]) == "1 x no such Service yet, 2 x no connection, 1 x 503"


def test_right_and_wrong_answers_look_different_without_colours() -> None:
    written = io.StringIO()
    asked = [
        questions.Asked("a", answered(0.0), "fine", "fine", good=True),
        questions.Asked("b", REFUSED, "-", "4xx", good=False),
    ]
    Console(file=written, width=100).print(playing.table(asked))
    assert "<- wrong: 4xx was to come" in written.getvalue()
    assert written.getvalue().count("wrong") == 1
