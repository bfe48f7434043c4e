"""How many running pools advisories may cut: one bad entry with an open range does not take a fleet down."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvfence.domain.advisories import Applies, CutLimit, Running, Subject, judge, limit_cuts, parse
from kvfence.domain.severity import Severity
from tests.unit.domain.advisories.osv_documents import ranged

calmly = settings(deadline=None)  # a busy machine is no failure

names = st.text("abc", min_size=1, max_size=2)
fleets = st.lists(
    st.builds(Running, names, st.none() | st.sampled_from(Severity), st.booleans()),
    max_size=20,
    unique_by=lambda p: p.name,
)
limits = st.builds(CutLimit, st.sampled_from(Severity), st.integers(0, 8))
ORDER = list(Severity)


def test_one_entry_with_an_open_range_cuts_no_more_of_a_fleet_than_the_limit() -> None:
    bad = parse(ranged({"introduced": "0"}))
    applies = judge(bad, Subject("sglang", "0.5.23")).applies is Applies.YES
    fleet = [Running(f"tenant-{number}/pool", bad.severity if applies else None, cut=False) for number in range(100)]
    assert limit_cuts(fleet, CutLimit(Severity.HIGH, 2)) == ("tenant-0/pool", "tenant-1/pool")
    standing = [replace(pool, cut=pool.name in {"tenant-0/pool", "tenant-1/pool"}) for pool in fleet]
    assert limit_cuts(standing, CutLimit(Severity.HIGH, 2)) == ()


def test_the_gravest_come_first_and_then_the_names() -> None:
    fleet = [
        Running("b", Severity.HIGH, cut=False),
        Running("c", Severity.CRITICAL, cut=False),
        Running("a", Severity.HIGH, cut=False),
        Running("d", Severity.MEDIUM, cut=False),
        Running("e", None, cut=False),
    ]
    assert limit_cuts(fleet, CutLimit(Severity.HIGH, 9)) == ("c", "a", "b")


def test_without_a_limit_nothing_that_runs_is_cut() -> None:
    assert limit_cuts([Running("a", Severity.CRITICAL, cut=False)], None) == ()


def test_what_was_cut_counts_even_when_its_advisory_is_gone() -> None:
    fleet = [Running("a", None, cut=True), Running("b", Severity.CRITICAL, cut=False)]
    assert limit_cuts(fleet, CutLimit(Severity.HIGH, 1)) == ()
    assert limit_cuts(fleet, CutLimit(Severity.HIGH, 2)) == ("b",)


def test_a_negative_limit_is_a_slip() -> None:
    with pytest.raises(ValueError, match="0 at least"):
        CutLimit(Severity.HIGH, -1)


@calmly
@given(fleets, limits)
def test_never_more_stand_cut_than_the_limit_and_all_of_them_are_grave_enough(
    fleet: list[Running], limit: CutLimit
) -> None:
    before = {pool.name for pool in fleet if pool.cut}
    chosen = limit_cuts(fleet, limit)
    assert len(before | set(chosen)) <= max(limit.at_most, len(before))
    by_name = {pool.name: pool for pool in fleet}
    for name in chosen:
        under = by_name[name].under
        assert under is not None
        assert ORDER.index(under) <= ORDER.index(limit.severity)
        assert not by_name[name].cut


@calmly
@given(fleets, limits, st.randoms())
def test_the_choice_does_not_hang_on_the_order_of_looking(
    fleet: list[Running], limit: CutLimit, random: object
) -> None:
    shuffled = list(fleet)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert limit_cuts(shuffled, limit) == limit_cuts(fleet, limit)


@calmly
@given(fleets, limits)
def test_looking_again_and_again_never_cuts_beyond_the_limit(fleet: list[Running], limit: CutLimit) -> None:
    at_first = sum(pool.cut for pool in fleet)
    for _ in range(3):
        chosen = set(limit_cuts(fleet, limit))
        fleet = [replace(pool, cut=pool.cut or pool.name in chosen) for pool in fleet]
        assert sum(pool.cut for pool in fleet) <= max(at_first, limit.at_most)
    assert limit_cuts(fleet, limit) == ()
