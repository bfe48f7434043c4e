"""What a search printed is read right, and one that did not look at everything shows nothing."""

from __future__ import annotations

import pytest

from e2e.errors import StageError
from e2e.model import checker, events
from e2e.model.events import Event

COMPLETE = """
State-vector 100 byte, depth reached 166, errors: 0
  5731535 states, stored
 15111805 states, matched
"""
VIOLATED = """
pan:1: assertion violated (holds[row[r].page[e]]==row[r].id) (at depth 36)
pan: wrote pages.pml.trail
Warning: Search not completed
State-vector 100 byte, depth reached 37, errors: 1
 1.05e+06 states, stored
"""


def test_a_complete_search_is_read() -> None:
    assert checker.judge(COMPLETE) == (5731535, 166, False)


def test_a_violation_ends_a_search_and_counts() -> None:
    assert checker.judge(VIOLATED) == (1050000, 37, True)


@pytest.mark.parametrize(
    "line",
    [
        "error: max search depth too small",
        "pan: out of memory",
        "pan: reached -DMEMLIM bound",
        "Warning: Search not completed",
        "Interrupted",
    ],
)
def test_a_search_that_was_cut_short_shows_nothing(line: str) -> None:
    with pytest.raises(StageError, match="not complete"):
        checker.judge(f"{line}\n{COMPLETE}")


def test_a_search_that_says_nothing_is_an_error() -> None:
    with pytest.raises(StageError, match="did not say"):
        checker.judge("Segmentation fault")


def test_events_are_found_among_what_spin_prints() -> None:
    output = "using statement merging\n      EVENT come 0 2\nEVENT publish 0\nspin: trail ends after 37 steps\n"
    assert events.read(output) == (Event("come", (0, 2)), Event("publish", (0,)))
