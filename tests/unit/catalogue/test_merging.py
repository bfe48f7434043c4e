"""Two catalogues together: what was added takes another's place only if it is newer, and says so."""

from __future__ import annotations

from typing import Any

from kvfence.catalogue import Catalogue, merged
from kvfence.catalogue.catalogue import collected
from tests.unit.catalogue.signed_documents import NOW
from tests.unit.domain.advisories.osv_documents import document

BASE = collected([document(), document(id="KVF-2026-9000")], None)


def more(**changed: Any) -> Catalogue:
    """Return a catalogue of one entry."""
    return collected([document(**changed)], NOW)


def test_an_entry_with_a_new_id_is_added_in_order_without_a_word() -> None:
    together = merged(BASE, more(id="KVF-2026-8999"))
    assert [one.id for one in together.advisories] == ["KVF-2026-8999", "KVF-2026-9000", "KVF-2026-9001"]
    assert (together.problems, together.notes, together.date) == ((), (), NOW)


def test_a_newer_entry_takes_the_place_and_says_so() -> None:
    together = merged(BASE, more(modified="2026-11-02T00:00:00Z", summary="Newer"))
    assert [one.summary for one in together.advisories] == ["A fault", "Newer"]
    assert together.problems == ()
    assert together.notes == ("KVF-2026-9001: what was added takes the place of what comes with kvfence.",)


def test_a_newer_entry_that_is_withdrawn_says_that_it_applies_to_nothing() -> None:
    together = merged(BASE, more(modified="2026-11-02T00:00:00Z", withdrawn="2026-11-02T00:00:00Z"))
    assert "applies to nothing" in together.notes[0]


def test_an_older_or_equally_old_entry_that_differs_is_not_taken_and_that_is_a_problem() -> None:
    for modified in ("2026-10-31T00:00:00Z", "2026-11-01T00:00:00Z"):
        together = merged(BASE, more(modified=modified, summary="Weaker"))
        assert together.advisories == BASE.advisories
        (problem,) = together.problems
        assert problem.startswith("KVF-2026-9001: what was added is not taken")


def test_the_same_entry_once_more_needs_no_word() -> None:
    together = merged(BASE, more())
    assert together.advisories == BASE.advisories
    assert (together.problems, together.notes) == ((), ())


def test_problems_of_both_are_kept() -> None:
    together = merged(Catalogue(NOW, (), ("one",)), Catalogue(None, (), ("two",)))
    assert (together.problems, together.date) == (("one", "two"), NOW)
