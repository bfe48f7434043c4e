"""Page tags against a slow obvious reference: a dictionary of who holds what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kvfence_engine.integrity.tags import LARGEST, TagTable, Verdict

PAGES = 9
MINE, OTHER = 11, 22


def table(pages: int = PAGES) -> TagTable:
    return TagTable(pages, lambda count: np.zeros(count, np.int64), lambda count: np.arange(count, dtype=np.int64))


def at(*pages: int) -> Any:
    return np.array(pages, np.int64)


def judged(tags: TagTable, pages: Any, generation: int, contents: Any = None) -> list[int]:
    return [int(one) for one in tags.verdicts(pages, generation, contents)]


def test_a_page_that_nobody_took_is_foreign_to_everybody() -> None:
    assert judged(table(), at(1, 2), MINE) == [Verdict.FOREIGN, Verdict.FOREIGN]


def test_a_page_is_fine_for_its_holder_alone_once_it_is_written() -> None:
    tags = table()
    tags.take(at(1, 2), MINE, written=True)
    assert judged(tags, at(1, 2), MINE) == [Verdict.FINE, Verdict.FINE]
    assert judged(tags, at(1, 2), OTHER) == [Verdict.FOREIGN, Verdict.FOREIGN]


def test_a_page_of_a_transfer_is_unwritten_until_it_arrived() -> None:
    tags = table()
    tags.take(at(1, 2), MINE, written=False)
    tags.arrived(at(1), MINE)
    assert judged(tags, at(1, 2), MINE) == [Verdict.FINE, Verdict.UNWRITTEN]


def test_what_arrives_late_for_a_page_that_was_given_on_makes_nothing_fine() -> None:
    tags = table()
    tags.take(at(1), MINE, written=False)
    tags.release(at(1))
    tags.take(at(1), OTHER, written=False)
    tags.arrived(at(1), MINE)
    assert judged(tags, at(1), OTHER) == [Verdict.UNWRITTEN]
    assert judged(tags, at(1), MINE) == [Verdict.FOREIGN]


def test_what_arrives_leaves_the_pages_of_others_written() -> None:
    tags = table()
    tags.take(at(1), OTHER, written=True)
    tags.arrived(at(1), MINE)
    assert judged(tags, at(1), OTHER) == [Verdict.FINE]


def test_a_full_page_is_shared_with_whoever_expects_the_same_there() -> None:
    tags = table()
    tags.take(at(1, 2), MINE, written=True)
    tags.label(at(1), at(77))
    assert judged(tags, at(1, 2), OTHER, at(77, 77)) == [Verdict.FINE, Verdict.FOREIGN]
    assert judged(tags, at(1, 2), OTHER, at(78, 0)) == [Verdict.FOREIGN, Verdict.FOREIGN]


def test_no_content_is_not_the_same_content() -> None:
    tags = table()
    tags.take(at(1), MINE, written=True)
    assert judged(tags, at(1), OTHER, at(0)) == [Verdict.FOREIGN]


def test_a_label_on_a_page_that_is_free_is_none() -> None:
    tags = table()
    tags.label(at(1), at(77))
    tags.take(at(1), MINE, written=True)
    assert judged(tags, at(1), OTHER, at(77)) == [Verdict.FOREIGN]


def test_a_page_loses_its_label_when_it_is_given_on() -> None:
    tags = table()
    tags.take(at(1), MINE, written=True)
    tags.label(at(1), at(77))
    tags.release(at(1))
    assert judged(tags, at(1), OTHER, at(77)) == [Verdict.FOREIGN]


def test_a_page_that_is_given_to_two_is_foreign_to_both_and_counted() -> None:
    tags = table()
    tags.take(at(1, 2), MINE, written=True)
    tags.label(at(1, 2), at(77, 78))
    tags.take(at(2, 3), OTHER, written=True)
    assert judged(tags, at(1, 2), MINE) == [Verdict.FINE, Verdict.FOREIGN]
    assert judged(tags, at(2, 3), OTHER, at(78, 0)) == [Verdict.FOREIGN, Verdict.FINE]
    assert (tags.conflicts(), tags.conflicts()) == (1, 0)


def test_a_page_that_is_held_stays_its_holders_when_the_second_yields() -> None:
    tags = table()
    tags.take(at(1, 2), MINE, written=True)
    tags.label(at(2), at(78))
    tags.take(at(2, 3), OTHER, written=False, yields=True)
    assert judged(tags, at(1, 2), MINE) == [Verdict.FINE, Verdict.FINE]
    assert judged(tags, at(2, 3), OTHER) == [Verdict.FOREIGN, Verdict.UNWRITTEN]
    assert judged(tags, at(2), OTHER, at(78)) == [Verdict.FINE]
    assert tags.conflicts() == 1


def test_a_page_that_comes_twice_to_one_that_yields_is_foreign_too() -> None:
    tags = table()
    tags.take(at(3), MINE, written=True)
    tags.take(at(1, 3, 4, 1), OTHER, written=True, yields=True)
    assert judged(tags, at(1, 3, 4), OTHER) == [Verdict.FOREIGN, Verdict.FOREIGN, Verdict.FINE]
    assert judged(tags, at(3), MINE) == [Verdict.FINE]
    assert tags.conflicts() >= 2


def test_the_dummy_page_is_nobodys() -> None:
    tags = table()
    tags.take(at(1, 2), MINE, written=True)
    tags.take(at(2, 3), OTHER, written=True, yields=True)
    tags.take(at(1, 4), OTHER, written=True)
    assert judged(tags, at(0), MINE) == judged(tags, at(0), OTHER) == [Verdict.FOREIGN]
    assert not tags.all_held(OTHER)[0]


def test_a_page_that_comes_twice_at_once_is_foreign_and_counted() -> None:
    tags = table()
    tags.take(at(1, 4, 1), MINE, written=True)
    assert judged(tags, at(4, 1), MINE) == [Verdict.FINE, Verdict.FOREIGN]
    assert tags.conflicts() >= 1


def test_a_decode_step_takes_a_page_for_each_of_several_requests() -> None:
    tags = table()
    tags.take(at(3, 5), at(MINE, OTHER), written=True)
    assert judged(tags, at(3, 5), MINE) == [Verdict.FINE, Verdict.FOREIGN]
    assert judged(tags, at(3, 5), OTHER) == [Verdict.FOREIGN, Verdict.FINE]


@pytest.mark.parametrize("generation", [1, LARGEST])
def test_generations_reach_from_one_to_the_largest(generation: int) -> None:
    tags = table()
    tags.take(at(1), generation, written=True)
    tags.label(at(1), at(generation))
    assert judged(tags, at(1), generation) == [Verdict.FINE]
    assert judged(tags, at(1), OTHER, at(generation)) == [Verdict.FINE]


def test_what_a_request_holds_is_known_wherever_its_row_points() -> None:
    tags = table()
    tags.take(at(1, 2), MINE, written=True)
    tags.take(at(3), OTHER, written=True)
    assert list(tags.held(at(1, 3), MINE)) == [True, False]
    assert list(np.flatnonzero(tags.all_held(MINE))) == [1, 2]


def test_clearing_releases_all() -> None:
    tags = table()
    tags.take(at(1, 2), MINE, written=True)
    tags.clear()
    assert not tags.all_held(MINE).any()
    tags.take(at(1), OTHER, written=True)
    assert tags.conflicts() == 0


@dataclass
class Page:
    """What the reference knows of a page that somebody holds."""

    owner: int
    written: bool
    content: int = 0


class Tags(RuleBasedStateMachine):
    """Any order of the operations on a few pages by a few requests."""

    @initialize()
    def begin(self) -> None:
        self.tags = table()
        self.pages: dict[int, Page] = {}
        self.conflicts = 0

    some = st.lists(st.integers(1, PAGES - 1), min_size=1, max_size=4, unique=True)
    request = st.integers(1, 3)

    @rule(pages=some, generation=request, written=st.booleans(), yields=st.booleans())
    def take(self, pages: list[int], generation: int, written: bool, yields: bool) -> None:
        self.tags.take(at(*pages), generation, written=written, yields=yields)
        for page in pages:
            held = page in self.pages
            self.conflicts += held
            if not (held and yields):
                self.pages[page] = Page(-1 if held else generation, written and not held)

    @rule(pages=some, content=st.integers(1, 2))
    def label(self, pages: list[int], content: int) -> None:
        self.tags.label(at(*pages), at(*[content] * len(pages)))
        for page in pages:
            if page in self.pages and self.pages[page].owner > 0:
                self.pages[page].content = content

    @rule(pages=some, generation=request)
    def arrived(self, pages: list[int], generation: int) -> None:
        self.tags.arrived(at(*pages), generation)
        for page in pages:
            if page in self.pages and self.pages[page].owner == generation:
                self.pages[page].written = True

    @rule(pages=some)
    def release(self, pages: list[int]) -> None:
        self.tags.release(at(*pages))
        for page in pages:
            self.pages.pop(page, None)

    @rule()
    def count(self) -> None:
        assert self.tags.conflicts() == self.conflicts
        self.conflicts = 0

    @invariant()
    def every_request_gets_the_verdict_of_the_reference(self) -> None:
        everything = range(1, PAGES)
        for generation in (1, 2, 3):
            for content in (0, 1, 2):
                wanted = [self._verdict(page, generation, content) for page in everything]
                given = self.tags.verdicts(at(*everything), generation, at(*[content] * len(everything)))
                assert [int(one) for one in given] == wanted

    def _verdict(self, page: int, generation: int, content: int) -> Verdict:
        known = self.pages.get(page)
        if known is None or not (known.owner == generation or (content and known.content == content)):
            return Verdict.FOREIGN
        return Verdict.FINE if known.written else Verdict.UNWRITTEN


TestTags = Tags.TestCase


# --- faults that canaries ask for ---


@given(
    held=st.lists(st.sampled_from([MINE, OTHER]), min_size=PAGES - 1, max_size=PAGES - 1),
    drilled=st.lists(st.integers(1, PAGES - 1), max_size=PAGES),
    owner=st.sampled_from([None, 33]),
    writer=st.sampled_from([None, 0, 33]),
)
def test_pages_that_were_disguised_have_their_own_tags_again(
    held: list[int], drilled: list[int], owner: int | None, writer: int | None
) -> None:
    tags = table()
    pages = at(*range(1, PAGES))
    tags.take(pages, np.array(held), written=False)
    tags.arrived(pages[::2], MINE)
    tags.label(pages[::3], pages[::3] + 70)
    before = [list(getattr(tags, name)) for name in ("_owner", "_content", "_writer")]
    kept = tags.disguise(at(*drilled), owner=owner, writer=writer)
    tags.restore(at(*drilled), kept)
    assert [list(getattr(tags, name)) for name in ("_owner", "_content", "_writer")] == before
    assert tags.conflicts() == 0


def test_a_disguise_is_found_in_these_pages_alone() -> None:
    tags = table()
    tags.take(at(1, 2, 3), MINE, written=True)
    tags.label(at(1, 2), at(71, 72))
    foreign = tags.disguise(at(2), owner=OTHER)
    assert judged(tags, at(1, 2, 3), MINE, at(71, 72, 0)) == [Verdict.FINE, Verdict.FOREIGN, Verdict.FINE]
    tags.restore(at(2), foreign)
    tags.disguise(at(3), writer=0)
    assert judged(tags, at(1, 2, 3), MINE) == [Verdict.FINE, Verdict.FINE, Verdict.UNWRITTEN]
