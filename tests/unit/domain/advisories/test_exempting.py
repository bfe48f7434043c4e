"""Exemptions: somebody's, for a reason, and for a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kvfence.domain.advisories import Exemption, exempted, lapsed, parse
from tests.unit.domain.advisories.osv_documents import document

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
ADVISORY = parse(document())


def exemption(until: datetime, identifier: str = "KVF-2026-9001") -> Exemption:
    return Exemption(identifier, "sre@example.org", "The early send is off.", until)


def test_an_exemption_holds_until_its_end_and_not_at_it() -> None:
    one = exemption(NOW)
    assert exempted(ADVISORY, [one], NOW - timedelta(seconds=1)) == one
    assert exempted(ADVISORY, [one], NOW) is None
    assert lapsed(ADVISORY, [one], NOW) == one
    assert lapsed(ADVISORY, [one], NOW - timedelta(seconds=1)) is None


def test_of_several_the_one_that_holds_longest_counts() -> None:
    several = [exemption(NOW + timedelta(days=days)) for days in (1, 3, 2, -1)]
    assert exempted(ADVISORY, several, NOW) == several[1]
    assert lapsed(ADVISORY, several, NOW) == several[3]


def test_an_alias_names_the_advisory_and_another_id_does_not() -> None:
    tomorrow = NOW + timedelta(days=1)
    assert exempted(ADVISORY, [exemption(tomorrow, "CVE-2026-99999")], NOW) is not None
    assert exempted(ADVISORY, [exemption(tomorrow, "KVF-2026-900")], NOW) is None
    assert exempted(ADVISORY, [], NOW) is None


def test_the_end_is_a_moment_wherever_it_was_written() -> None:
    one = exemption(datetime(2026, 11, 30, 14, tzinfo=timezone(timedelta(hours=1))))
    assert exempted(ADVISORY, [one], NOW + timedelta(minutes=59)) == one
    assert exempted(ADVISORY, [one], NOW + timedelta(minutes=60)) is None


@pytest.mark.parametrize("missing", ["id", "who", "reason"])
def test_an_exemption_without_one_of_its_words_is_none(missing: str) -> None:
    fields = {"id": "KVF-2026-9001", "who": "sre", "reason": "x"} | {missing: " "}
    with pytest.raises(ValueError, match=f"needs its {missing}"):
        Exemption(**fields, until=NOW)


def test_an_exemption_without_an_offset_is_none() -> None:
    with pytest.raises(ValueError, match="offset from UTC"):
        exemption(datetime(2026, 12, 31))  # noqa: DTZ001 - it is the fault
