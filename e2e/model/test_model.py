"""With all defences no interleaving lets a request read what is not its own; without any one of them, one does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from e2e.model import checker, page, replay
from e2e.model.cli import is_as_it_should_be
from e2e.model.defences import ALL, SEARCHES, WITH_ALL, WITH_NONE, WITHOUT, Defence, Search
from e2e.model.replay import Ending

if TYPE_CHECKING:
    from e2e.conftest import Aloud
    from e2e.model.checker import Found

Results = dict[str, "Found"]

WALKS = 10
STOPPED = {
    Defence.OWNER: (Ending.REFUSED, "a page of another"),
    Defence.WRITER: (Ending.REFUSED, "a page that nobody wrote"),
    Defence.COVERAGE: (Ending.REFUSED, "OtherPrompt"),
    Defence.SCRUB: (Ending.REFUSED, "other bytes"),
    Defence.RETIRE: (Ending.NOT_GIVEN, "page 1 is not free"),
    Defence.FRESH: (Ending.NOT_GIVEN, "page 1 is not free"),
    Defence.WITHHOLD: (Ending.NOT_GIVEN, "page 1 is not free"),
    Defence.KEEP: (Ending.RIGHT, "every page that is read holds the reader's own KV"),
    Defence.ORDER: (Ending.RIGHT, "every page that is read holds the reader's own KV"),
    Defence.CLEAR: (Ending.RIGHT, "nothing is found, and there is nothing to find"),
}
"""What becomes of the counterexample of each defence when it is on."""


@pytest.fixture(scope="module")
def found(aloud: Aloud) -> Results:
    """What all searches came to, by their names."""
    with aloud():
        return {one.search.name: one for one in checker.search_all()}


def test_with_all_defences_nothing_leaks_and_nothing_right_is_refused(found: Results) -> None:
    assert found[WITH_ALL.name].violation == ()
    assert found[WITH_ALL.name].states > 1_000_000, "the model has lost most of its states"


@pytest.mark.parametrize("defence", Defence, ids=lambda defence: defence.value)
def test_a_page_is_read_by_another_without_a_defence(found: Results, defence: Defence) -> None:
    one = found[WITHOUT[defence].name]
    assert is_as_it_should_be(one)
    expected = {Defence.CLEAR: "a false alarm", Defence.WRITER: "zeros are read"}
    assert page.result(one) == expected.get(defence, "a leak")


@pytest.mark.parametrize("defence", Defence, ids=lambda defence: defence.value)
def test_a_counterexample_happens_on_the_real_code_and_not_when_the_defence_is_on(
    found: Results, defence: Defence
) -> None:
    violation = found[WITHOUT[defence].name].violation
    without, with_it = replay.play(violation, ALL - {defence}), replay.play(violation, ALL)
    assert without.ending is (Ending.FALSE_ALARM if defence is Defence.CLEAR else Ending.LEAKED)
    assert without.step == len(violation) - 1, "it happened earlier than in the model"
    assert (with_it.ending, with_it.what) == STOPPED[defence]


def test_with_no_defence_the_real_code_leaks_too(found: Results) -> None:
    violation = found[WITH_NONE.name].violation
    assert replay.play(violation, WITH_NONE.on).ending is Ending.LEAKED
    assert replay.play(violation, ALL).ending is Ending.REFUSED


def test_the_page_says_what_the_model_gives(found: Results) -> None:
    assert page.PAGE.part_of(page.PAGE.path.read_text()) == page.text(found.values())


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.name)
def test_model_and_code_do_the_same_on_ways_chosen_at_random(search: Search) -> None:
    first = 1000 * SEARCHES.index(search)
    ways = [checker.walk(search, seed) for seed in range(first, first + WALKS)]
    assert [found for way in ways if (found := replay.differences(way, search.on))] == []
    verified = sum(event.kind == "verify" for way in ways for event in way)
    least = WALKS // 2 if Defence.CLEAR in search.on else 0  # pages that keep their tags are soon used up
    assert verified >= least, "they lead nowhere"


def test_every_part_of_the_model_is_reached(found: Results) -> None:
    assert found[WITH_ALL.name].unreached == {"-end-"}
