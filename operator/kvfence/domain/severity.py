"""How bad something is, in the words of CVSS: of findings and of advisories."""

from __future__ import annotations

from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is, in the words of CVSS."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    def at_least(self, other: Severity) -> bool:
        """Whether this is as bad as the other, or worse."""
        return _RANK[self] >= _RANK[other]

    @property
    def order(self) -> int:
        """Small numbers for what is grave: to sort by."""
        return -_RANK[self]


_RANK = {Severity.CRITICAL: 3, Severity.HIGH: 2, Severity.MEDIUM: 1, Severity.LOW: 0}
