"""The meaning of ranges, against a slow and obvious reading of OSV's own rule."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from kvfence.domain.advisories import Applies, Subject, judge, parse
from tests.unit.domain.advisories.osv_documents import ranged

calmly = settings(deadline=None)  # a busy machine is no failure

releases = st.builds(
    lambda numbers, post: ".".join(map(str, numbers)) + (f".post{post}" if post else ""),
    st.lists(st.integers(0, 3), min_size=1, max_size=3),
    st.integers(0, 2),
)


@st.composite
def event_lists(draw: st.DrawFn) -> list[dict[str, str]]:
    """Return events in turn, in any order of writing, of which the last may be open."""
    drawn = draw(st.lists(releases, min_size=1, max_size=6, unique_by=Version))
    places = sorted(drawn, key=Version)
    end = draw(st.sampled_from(["fixed", "last_affected"]))
    events = [{("introduced" if index % 2 == 0 else end): place} for index, place in enumerate(places)]
    if draw(st.booleans()) and Version(places[0]) > Version("0"):
        events[0] = {"introduced": "0"}
    return draw(st.permutations(events))


def obvious(events: list[dict[str, str]], version: Version) -> bool:
    """Walk from the first release to this one, and turn the light on and off at each event."""
    steps: list[tuple[Version, bool]] = []
    for event in events:
        ((kind, text),) = event.items()
        steps.append((Version(text), kind == "introduced"))
        if kind == "last_affected":
            steps.pop()
    lit = False
    for place, on in sorted(steps):
        if place <= version:
            lit = on
    lasts = sorted(Version(event["last_affected"]) for event in events if "last_affected" in event)
    starts = sorted(place for place, on in steps if on and place <= version)
    if lit and starts and any(starts[-1] <= last < version for last in lasts):
        return False
    return lit


@calmly
@given(event_lists(), releases)
def test_a_release_is_affected_as_the_events_say_in_order(events: list[dict[str, str]], text: str) -> None:
    advisory = parse(ranged(*events))
    places = [place for event in events for place in event.values()]
    for one in (
        text,
        *places,
        *(f"{Version(place).base_version}.post9" for place in places),
    ):  # at each event, and just behind it
        expected = Applies.YES if obvious(events, Version(one)) else Applies.NO
        assert judge(advisory, Subject("sglang", one)).applies is expected


@calmly
@given(event_lists(), releases, st.sampled_from(["rc1", ".dev3", "+local", "a1", ".dev0+g1234567"]))
def test_what_is_no_release_is_never_new_enough(events: list[dict[str, str]], text: str, ending: str) -> None:
    assert judge(parse(ranged(*events)), Subject("sglang", text + ending)).applies is Applies.UNKNOWN
