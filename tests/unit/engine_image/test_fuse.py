"""The fuse blows exactly when a slow reading of the rule says so: for what escaped at once, else in a window."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvfence_engine.fuse import CONTAINED_LIMIT, CONTAINED_SECONDS, Fuse, Trip
from kvfence_engine.integrity.classes import Finding
from kvfence_engine.state import Alarm


@dataclass(frozen=True)
class Step:
    """A rank finds something, or nothing, and is looked at some seconds after the step before."""

    seconds: int
    rank: int
    more: int
    """Contained findings since this rank was looked at last."""


STEPS = st.lists(st.builds(Step, st.integers(0, 20), st.integers(0, 2), st.sampled_from([0, 0, 1, 1, 2, 5])))


def blows(steps: list[Step], limit: int, seconds: int) -> list[bool]:
    """Read the rule slowly: a new finding blows the fuse when so many are not older than that, over all ranks."""
    now, found, said = 0, list[int](), list[bool]()
    for step in steps:
        now += step.seconds
        found += [now] * step.more
        said.append(bool(step.more) and sum(now - at < seconds for at in found) >= limit)
    return said


@given(STEPS, st.integers(1, 6), st.integers(1, 40))
def test_contained_findings_count_in_a_window_over_all_ranks(steps: list[Step], limit: int, seconds: int) -> None:
    fuse, now, counts = Fuse(limit, seconds), 0, [0, 0, 0]
    said = []
    for step in steps:
        now += step.seconds
        counts[step.rank] += step.more
        trip = fuse.see(now, step.rank, Alarm(contained=counts[step.rank], kind="OtherBytes"))
        assert trip in (None, Trip(Finding.CONTAINED, "OtherBytes", ""))
        said.append(trip is not None)
    assert said == blows(steps, limit, seconds)


@given(STEPS, st.integers(0, 2))
def test_what_escaped_blows_at_once_whatever_was_before(steps: list[Step], rank: int) -> None:
    fuse, now = Fuse(1000, 1), 0
    for step in steps:
        now += step.seconds
        assert fuse.see(now, step.rank, Alarm()) is None
    alarm = Alarm(escaped="HookMissing", isolated="TooManyRetired", peer="10.0.0.1:8998")
    assert fuse.see(now, rank, alarm) == Trip(Finding.ESCAPED, "HookMissing", "10.0.0.1:8998")


def test_what_isolates_needs_no_others() -> None:
    alarm = Alarm(contained=1, kind="OtherBytes", isolated="TooManyRetired")
    assert Fuse(1000).see(0, 0, alarm) == Trip(Finding.CONTAINED, "TooManyRetired", "")


def test_a_few_within_minutes_blow_a_fuse_that_was_told_nothing() -> None:
    fuse, alarm = Fuse(), Alarm(kind="EmptyPage")
    seen = [fuse.see(at, 0, replace(alarm, contained=n)) for n, at in enumerate((0.0, 200.0, 400.0, 480.0), 1)]
    assert (CONTAINED_LIMIT, CONTAINED_SECONDS) == (3, 300)
    assert seen == [None, None, None, Trip(Finding.CONTAINED, "EmptyPage", "")]


@pytest.mark.parametrize(("limit", "seconds"), [(0, 1), (-1, 1), (1, 0), (1, -1), (1, float("nan"))])
def test_a_fuse_that_could_never_blow_as_it_should_is_not_made(limit: int, seconds: float) -> None:
    with pytest.raises(ValueError, match="from 1 on, within more than 0 seconds"):
        Fuse(limit, seconds)
