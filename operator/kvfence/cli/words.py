"""The words that kvfence says in statuses, events and reports, each with its meaning from where it is declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvfence.api.v1alpha1 import conditions, reasons
from kvfence.api.v1alpha1.conditions import ConditionType
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.api.words import texts
from kvfence.catalogue import packaged
from kvfence.cli.findings import FINDINGS
from kvfence.domain import verdicts
from kvfence.domain.verdicts import Check

if TYPE_CHECKING:
    from collections.abc import Sequence
    from enum import StrEnum
    from types import ModuleType

    from kvfence.domain.advisories import Advisory


@dataclass(frozen=True, slots=True)
class Word:
    """One word."""

    name: str
    kind: str
    """What it is a word for, as the heading of a list."""
    says: str
    aliases: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    """Further paragraphs."""


def all_words(advisories: Sequence[Advisory] | None = None) -> tuple[Word, ...]:
    """Return every word; one that is both a reason and a finding stands there twice.

    Args:
        advisories: that are known; those in the package unless given.
    """
    return (
        *_of(conditions, ConditionType, "Conditions"),
        *_of(reasons, Reason, "Reasons"),
        *_of(verdicts, Check, "Checks"),
        *(Word(name, "Findings of the doctor", says) for name, says in FINDINGS.items()),
        *map(_of_advisory, packaged().advisories if advisories is None else advisories),
    )


def _of(module: ModuleType, words: type[StrEnum], kind: str) -> list[Word]:
    said = texts(module, words)
    return [Word(word.value, kind, said.get(word.name, "")) for word in words]


def _of_advisory(advisory: Advisory) -> Word:
    affected = [f"Affected: {one.package} {one}" for one in advisory.affected]
    condition = [] if advisory.condition is None else [f"Applies when: {advisory.condition}"]
    references = [f"See: {address}" for address in advisory.references]
    withdrawn = [] if advisory.withdrawn is None else [f"Withdrawn: {advisory.withdrawn.date()}"]
    more = (advisory.details, f"Severity: {advisory.severity.value}", *affected, *condition, *withdrawn)
    return Word(
        advisory.id,
        "Advisories",
        advisory.summary,
        advisory.aliases,
        (*more, f"What to do: {advisory.what_to_do}", *references),
    )
