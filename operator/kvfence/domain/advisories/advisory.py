"""What an advisory is: which releases of which packages, under which condition, how bad, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from packaging.version import Version

    from kvfence.domain.advisories.conditions import Condition
    from kvfence.domain.severity import Severity


@dataclass(frozen=True, slots=True)
class Span:
    """Releases next to each other, in the order of PEP 440."""

    introduced: Version | None
    """The first one; none for all from the beginning (`0` in OSV)."""
    fixed: Version | None = None
    """The first one that is not affected any more."""
    last_affected: Version | None = None
    """The last one that is known to be affected. With neither, the span is open: no fix is known."""

    def holds(self, version: Version) -> bool:
        """Whether a release lies within."""
        if self.introduced is not None and version < self.introduced:
            return False
        if self.fixed is not None:
            return version < self.fixed
        return self.last_affected is None or version <= self.last_affected

    def __str__(self) -> str:
        """Say it as people do."""
        start = "" if self.introduced is None else f"{self.introduced} and newer"
        if self.fixed is not None:
            return f"{start}, before {self.fixed}".removeprefix(", ")
        if self.last_affected is not None:
            return f"{start}, up to {self.last_affected}".removeprefix(", ")
        return start or "all releases"


@dataclass(frozen=True, slots=True)
class Affected:
    """Releases of one package."""

    package: str
    """Its name on PyPI, normalised: `sglang-router`."""
    spans: tuple[Span, ...]
    versions: tuple[Version, ...] = ()
    """Single releases that are affected besides."""

    def holds(self, version: Version) -> bool:
        """Whether a release is affected."""
        return version in self.versions or any(span.holds(version) for span in self.spans)

    def __str__(self) -> str:
        """Say it as people do."""
        return "; ".join([*map(str, self.spans), *map(str, self.versions)])


@dataclass(frozen=True, slots=True)
class Advisory:
    """One known fault."""

    id: str
    """`CVE-...`, `GHSA-...`, or `KVF-YEAR-NUMBER` where nobody else gave it a number."""
    aliases: tuple[str, ...]
    summary: str
    """One line."""
    details: str
    """What is known and from where, and what is not known."""
    severity: Severity
    affected: tuple[Affected, ...]
    condition: Condition | None
    """Under which it applies; none for always."""
    what_to_do: str
    references: tuple[str, ...]
    """Addresses of what was read."""
    modified: datetime
    closed_in_pools: str = ""
    """How a pool that kvfence runs is safe from it whatever its engine's release; empty when it is not."""
    withdrawn: datetime | None = None
    """Since when it counts no more: it applies to nothing."""

    def named(self, identifier: str) -> bool:
        """Whether that is its id or one of its aliases, whatever the case of letters."""
        return identifier.casefold() in {one.casefold() for one in (self.id, *self.aliases)}
