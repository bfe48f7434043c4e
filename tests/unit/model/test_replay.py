"""A way through the model is told in plain English, and played on the real tag table, coverage and scrub."""

from __future__ import annotations

from unittest import mock

import pytest

from e2e.model import page, replay, telling
from e2e.model.defences import ALL, Defence
from e2e.model.events import Event
from e2e.model.replay import Ending
from kvfence_engine.integrity import coverage
from kvfence_engine.integrity.tags import TagTable


def way(*lines: str) -> tuple[Event, ...]:
    return tuple(Event(kind, tuple(map(int, numbers))) for kind, *numbers in (line.split() for line in lines))


COMES = ("come 0 1", "take 0 1 1", "publish 0")
RIGHT = way(*COMES, "send 0 1 1", "land 0 0 1 1", "complete 0", "verify 0 1", "step 0", "read 0 1 1")
LOST = way(*COMES, "send 0 1 1", "lose 0 0 1", "complete 0", "verify 0 1", "step 0", "read 0 1 255")
OTHERS = way(
    *("come 0 1", "take 0 1 1", "publish 0", "come 1 1", "take 1 2 1", "publish 1", "send 1 1 1", "land 1 0 2 1"),
    *("complete 1", "verify 1 1", "step 1", "read 1 2 1"),
)


def test_a_right_way_is_right_with_and_without_defences() -> None:
    assert replay.play(RIGHT, ALL).ending is Ending.RIGHT
    assert replay.play(RIGHT, ()).ending is Ending.RIGHT
    assert replay.differences(RIGHT, ALL) == []


def test_bytes_that_never_came_leak_without_scrubbing_alone() -> None:
    assert replay.play(LOST, ALL - {Defence.SCRUB}).ending is Ending.LEAKED
    assert replay.play(LOST, ALL).ending is Ending.REFUSED
    assert replay.differences(LOST, ALL) != []


def test_a_defence_that_does_not_work_is_seen_by_the_replay() -> None:
    assert replay.play(OTHERS, ALL).ending is Ending.REFUSED
    with mock.patch.object(coverage, "judge", return_value=None):
        assert replay.play(OTHERS, ALL).ending is Ending.LEAKED


def test_tags_that_stay_on_free_pages_refuse_who_is_right() -> None:
    lives = way(
        *("come 0 1", "take 0 1 1", "publish 0", "abort 0", "come 1 1", "take 1 1 1", "publish 1", "send 1 1 2"),
        *("land 1 0 1 2", "complete 1", "verify 1 1", "step 1", "read 1 1 2"),
    )
    assert replay.play(lives, ALL).ending is Ending.RIGHT
    with mock.patch.object(TagTable, "release"):
        assert replay.play(lives, ALL).ending is Ending.REFUSED


def test_steps_are_told_in_plain_english() -> None:
    assert telling.steps(LOST) == [
        "A1 comes, with a prompt of 1 page. It gets page 1. Prefill is told where.",
        "Prefill begins to send 1 page for A1.",
        "**Fault:** what prefill sends to page 1 for A1 never lands.",
        "The transfer for A1 is complete, it is said.",
        "A1 is verified.",
        "A1 takes a decode step. It reads page 1, which holds **KV of X, a user before**.",
    ]


def test_the_generated_part_of_the_page_is_replaced_and_the_rest_stays() -> None:
    old = f"before\n\n{page.PAGE.begin}\nold\n\n{page.PAGE.end}after\n"
    new = page.PAGE.with_part(old, "new\n")
    assert new == f"before\n\n{page.PAGE.begin}\nnew\n\n{page.PAGE.end}after\n"
    assert page.PAGE.part_of(new) == "new\n"
    with pytest.raises(ValueError, match="one mark"):
        page.PAGE.part_of("no marks")
