"""What a rule says, and how the same word of several rules' places becomes one finding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvfence.domain.diagnosis.report import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvfence.domain.severity import Severity

UPGRADE = "On both halves at the same time: pip install 'sglang>=0.5.23'"
"""The cure of what was mended in SGLang."""

PLACES_SHOWN = 6
"""Places that a message names; of more it says how many."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One place where a rule found something."""

    id: str
    severity: Severity
    where: str
    text: str
    """What, and why it matters: goes on after `where`, a colon and a space."""
    fix: str


def findings(hits: Iterable[Hit]) -> tuple[Finding, ...]:
    """Return one finding for each thing that is said, naming all places of it; the gravest first, then by place."""
    together: dict[tuple[str, Severity, str, str], list[str]] = {}
    for hit in hits:
        places = together.setdefault((hit.id, hit.severity, hit.text, hit.fix), [])
        if hit.where not in places:
            places.append(hit.where)
    ordered = sorted(together.items(), key=lambda item: (item[0][1].order, item[1][0], item[0][0], item[0][2]))
    return tuple(
        Finding(name, severity, f"{named(places)}: {text}", fix) for (name, severity, text, fix), places in ordered
    )


def named(places: list[str]) -> str:
    """Return places as a message names them."""
    if len(places) <= PLACES_SHOWN:
        return " and ".join([", ".join(places[:-1]), places[-1]] if len(places) > 1 else places)
    return f"{', '.join(places[:PLACES_SHOWN])} and {len(places) - PLACES_SHOWN} more"
