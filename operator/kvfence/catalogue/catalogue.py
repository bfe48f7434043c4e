"""A set of advisories with its date, and what was wrong with it: said, and never passed over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kvfence.domain.advisories import Advisory, parse

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Advisories, each id once."""

    date: datetime | None
    """Of when they were true; none when that could not be read."""
    advisories: tuple[Advisory, ...]
    """By their ids, in order."""
    problems: tuple[str, ...] = ()
    """What somebody has to mend, each one sentence. What a problem is about is missing above, or doubtful."""
    notes: tuple[str, ...] = ()
    """What is as it should be and worth knowing: an entry that took another's place."""


def collected(documents: Iterable[Any], date: datetime | None) -> Catalogue:
    """Return the catalogue of OSV documents. One that cannot be read drops itself alone, and is a problem."""
    found: dict[str, Advisory] = {}
    problems = []
    for number, document in enumerate(documents, start=1):
        try:
            one = parse(document)
        except ValueError as error:
            problems.append(f"Entry {number} is left out. {error}")
            continue
        if one.id in found:
            problems.append(f"{one.id} is there twice; the entry that was modified last counts. Remove the other.")
            one = max(found[one.id], one, key=lambda advisory: advisory.modified)
        found[one.id] = one
    return Catalogue(date, _in_order(found), tuple(problems))


def merged(base: Catalogue, more: Catalogue) -> Catalogue:
    """Return both together.

    An entry of `more` takes the place of one in `base` with the same id only if it was modified later, which is a note;
    one that was not and says something else is a problem. The date is that of `more`, if it has one.
    """
    found = {one.id: one for one in base.advisories}
    problems, notes = [*base.problems, *more.problems], [*base.notes, *more.notes]
    for one in more.advisories:
        before = found.get(one.id)
        if before is None or one.modified > before.modified:
            found[one.id] = one
        if before is not None and one.modified > before.modified:
            notes.append(f"{one.id}: what was added takes the place of what comes with kvfence.{_withdrawal(one)}")
        elif before is not None and one != before:
            problems.append(
                f"{one.id}: what was added is not taken, since what comes with kvfence says otherwise and was modified "
                f"at {before.modified.isoformat()}. Give it a later time under modified, or remove it."
            )
    return replace(
        base, date=more.date or base.date, advisories=_in_order(found), problems=tuple(problems), notes=tuple(notes)
    )


def _withdrawal(one: Advisory) -> str:
    return "" if one.withdrawn is None else " It is withdrawn, and applies to nothing."


def _in_order(found: dict[str, Advisory]) -> tuple[Advisory, ...]:
    return tuple(found[name] for name in sorted(found))
