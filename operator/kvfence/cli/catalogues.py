"""The advisories that a command goes by: those that came with kvfence, and those that the user adds."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.reasons import Reason
from kvfence.catalogue import added, merged, packaged
from kvfence.catalogue.adding import OLDEST
from kvfence.domain.diagnosis.report import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from kvfence.domain.advisories import Advisory
    from kvfence.domain.diagnosis.report import Report

UPGRADE = "pipx upgrade kvfence"
"""Brings newer advisories, and what can read them."""
LARGEST = 16_000_000
"""Bytes of a file of advisories."""


class AdvisoriesUnusableError(ValueError):
    """A file that was named cannot be read; the message says which."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of faults."""

    advisories: tuple[Advisory, ...]
    problems: tuple[Finding, ...] = ()
    """What could not be used: a bad signature, an entry that cannot be read, a list that is old."""
    notes: tuple[str, ...] = ()
    """What is worth knowing and no problem, each one sentence."""
    missing: tuple[str, ...] = ()
    """What is not known because what came with kvfence has aged, each one sentence."""

    def noted_in(self, report: Report) -> Report:
        """Return the report with the problems among its findings: nothing is left out silently."""
        findings = sorted((*report.findings, *self.problems), key=lambda one: one.severity.order)
        return replace(report, findings=tuple(findings), missing=(*report.missing, *self.missing))


def catalogues(file: str, key_file: str, now: datetime) -> Known:
    """Return what is known.

    Args:
        file: further advisories, with their signature beside them in FILE.sig; empty for none.
        key_file: the public key that the signature is checked with.
        now: for how old they are.

    Raises:
        AdvisoriesUnusableError: one of the files cannot be read.
    """
    own = packaged()
    problems, aged = _findings(own.problems, UPGRADE), _aged(own.date, now)
    if not file:
        return Known(own.advisories, problems, missing=aged)
    raw, signature, key = (_content(name) for name in (file, f"{file}.sig", key_file))
    together = merged(own, added(raw, signature, [key], now))
    names = (shlex.quote(name) for name in (file, f"{file}.sig", key_file))
    look = "python -m kvfence.catalogue check {} --signature {} --public-key {}".format(*names)
    more = _findings([one for one in together.problems if one not in own.problems], look)
    return Known(together.advisories, (*problems, *more), together.notes, aged)


def _aged(date: datetime | None, now: datetime) -> tuple[str, ...]:
    """Say that what came with kvfence is old. No finding: an old install would then find something everywhere.

    Of a list that somebody adds it is one (`kvfence.catalogue.adding`): they have taken on to keep it fresh.
    """
    if date is None or now - date <= OLDEST:
        return ()
    day = f"{date.date()}, more than {OLDEST.days} days ago"
    return (f"The advisories in kvfence are of {day}; faults found since are not looked for: {UPGRADE}",)


def _findings(problems: Sequence[str], fix: str) -> tuple[Finding, ...]:
    return tuple(Finding(Reason.ADVISORIES_INCOMPLETE.value, Severity.MEDIUM, one, fix) for one in problems)


def _content(name: str) -> bytes:
    try:
        with Path(name).open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except OSError as error:
        raise AdvisoriesUnusableError(f"{name}: {error.strerror or type(error).__name__}") from error
    if len(content) > LARGEST:
        raise AdvisoriesUnusableError(f"{name} has more than {LARGEST:,} bytes, and is no list of advisories")
    return content
