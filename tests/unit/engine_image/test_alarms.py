"""What a rank tells the launcher: counts that go up, and the first of what escaped."""

from __future__ import annotations

from typing import Any

from kvfence_engine.alarms import Alarms
from kvfence_engine.integrity.classes import Finding
from kvfence_engine.integrity.tally import Kind
from kvfence_engine.state import Alarm


def test_contained_findings_are_counted_and_the_last_is_named() -> None:
    told: list[Alarm] = []
    alarms = Alarms(told.append)
    alarms.sound(Finding.CONTAINED, Kind.FOREIGN_PAGE, "10.0.0.1:8998")
    alarms.sound(Finding.CONTAINED, Kind.COVERAGE)
    assert told == [Alarm(contained=1, kind="ForeignPage"), Alarm(contained=2, kind="Coverage")]


def test_what_a_client_or_a_lost_peer_brought_about_is_not_told() -> None:
    told: list[Alarm] = []
    alarms = Alarms(told.append)
    alarms.sound(Finding.REFUSED, Kind.COVERAGE)
    alarms.sound(Finding.FAILED, Kind.COVERAGE)
    assert told == []


def test_the_first_that_escaped_is_told_with_where_it_came_from_and_stays() -> None:
    told: list[Alarm] = []
    alarms = Alarms(told.append)
    alarms.sound(Finding.ESCAPED, Kind.UNVERIFIED, "10.0.0.1:8998")
    alarms.sound(Finding.ESCAPED, Kind.HOOK_MISSING, "10.0.0.2:8998")
    alarms.sound(Finding.CONTAINED, Kind.EMPTY_PAGE)
    alarms.isolate(Kind.TOO_MANY_RETIRED)
    escaped: dict[str, Any] = {"escaped": "Unverified", "peer": "10.0.0.1:8998"}
    assert told == [
        Alarm(**escaped),
        Alarm(contained=1, kind="EmptyPage", **escaped),
        Alarm(contained=1, kind="EmptyPage", isolated="TooManyRetired", **escaped),
    ]


def test_an_isolation_is_told_once() -> None:
    told: list[Alarm] = []
    alarms = Alarms(told.append)
    for kind in (Kind.TOO_MANY_RETIRED, Kind.SHARED_PAGE):
        alarms.isolate(kind)
    assert told == [Alarm(isolated="TooManyRetired")]
