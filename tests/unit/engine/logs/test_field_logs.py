"""The field's logs give the answers that their headers hold, with the header and without it."""

from __future__ import annotations

import pytest

from tests.fuzz.corpus import Field, field_logs
from tests.fuzz.judging import Score
from tests.fuzz.play import case, play
from tests.unit.engine.logs.reading import engines, one

PAIR = "031-pd-glm52-prefill-tp8-decode-dp8.log"
PLAIN = [log for log in field_logs() if log.name != PAIR]


@pytest.mark.parametrize("log", PLAIN, ids=lambda log: log.name[:3])
@pytest.mark.parametrize("headed", [False, True], ids=["body", "whole"])
def test_a_field_log_gives_the_answer_beside_it(log: Field, *, headed: bool) -> None:
    found = engines(log.whole if headed else log.body)
    assert {(engine.kv_pool_tokens, engine.context_length) for engine in found} == {(log.pool, log.context)}
    assert {engine.started for engine in found} <= ({False} if log.failed else {True, None})
    assert {engine.version for engine in found} == {None}


def test_both_halves_of_a_pair_are_told_apart_by_their_author() -> None:
    pair = next(log for log in field_logs() if log.name == PAIR)
    found = engines(pair.body, "pair.log")
    assert [(e.source, e.rank, e.kv_pool_tokens) for e in found] == [
        ("pair.log (prefill)", None, 3263680),
        ("pair.log (decode)", 0, 3085248),
    ]


def test_a_server_that_failed_once_and_started_then_counts_as_started() -> None:
    log = next(log for log in field_logs() if log.failed_before)
    assert one(log.body).started is True


def test_a_pool_that_was_announced_by_an_engine_that_failed_is_told_in_words_alone() -> None:
    log = next(log for log in field_logs() if log.failed)
    engine = one(log.body)
    assert (engine.started, engine.kv_pool_tokens) == (False, None)
    assert "6247850" in engine.notes[0]


def test_changed_logs_never_give_a_wrong_answer() -> None:
    tally = play(range(900_000, 901_500))
    assert not tally.wrong
    assert tally.scores[Score.KEPT] > 800


def test_the_comparison_sees_a_wrong_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    made = case(1)
    assert made.raw
    monkeypatch.setattr("tests.fuzz.play.told", lambda raw: tuple(engines(b"max_total_num_tokens=5, context_len=3\n")))
    monkeypatch.setattr(
        "tests.fuzz.play.answers",
        lambda told: __import__("tests.fuzz.judging").fuzz.judging.Answers({}, {}, frozenset()),
    )
    assert play(range(3)).scores[Score.WRONG] == 3
