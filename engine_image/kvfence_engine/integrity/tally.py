"""What the defences of one rank did since it started: counts alone, nothing of any request."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Any


class Kind(str, Enum):
    """What can be wrong with the KV that a request is about to read."""

    FOREIGN_PAGE = "ForeignPage"
    """A page that another holds, or nobody, and whose content is not the request's."""
    UNWRITTEN_PAGE = "UnwrittenPage"
    """A page into which nothing was written since the request got it."""
    SHARED_PAGE = "SharedPage"
    """The allocator gave a page to two requests at once."""
    EMPTY_PAGE = "EmptyPage"
    """A page that is still zero although its transfer is complete."""
    OTHER_BYTES = "OtherBytes"
    """What arrived is not what prefill had."""
    COVERAGE = "Coverage"
    """What prefill handed over is not what decode had made room for."""
    UNVERIFIED = "Unverified"
    """A request that reached decode although nobody tagged its pages."""
    HOOK_MISSING = "HookMissing"
    """A hook that was in place when the engine started is not there any more."""
    TOO_MANY_RETIRED = "TooManyRetired"
    """So many pages are retired that the pool does not hold the cap any more."""


class Tally:
    """The counts of one rank."""

    def __init__(self) -> None:
        self.requests_verified = 0
        self.requests_unverified = 0
        """Probes of the engine's own health, which read nothing that reaches anyone."""
        self.pages_expected = 0
        """Pages that requests were about to read when they were looked at."""
        self.pages_verified = 0
        """Pages of these that were looked at and found right."""
        self.bytes_zeroed = 0
        self.pages_retired = 0
        """Pages that nobody gets any more in this boot, since a transfer may still write into them."""
        self.requests_failed = 0
        """Requests that were ended because of a finding."""
        self.found: Counter[Kind] = Counter()
        """Findings of all requests, whatever became of them."""
        self.drills: Counter[Kind] = Counter()
        """Findings of faults that canaries asked for."""

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as they are shown."""
        return {
            "requestsVerified": self.requests_verified,
            "requestsUnverified": self.requests_unverified,
            "requestsFailed": self.requests_failed,
            "pagesExpected": self.pages_expected,
            "pagesVerified": self.pages_verified,
            "bytesZeroed": self.bytes_zeroed,
            "pagesRetired": self.pages_retired,
            "found": {kind.value: count for kind, count in sorted(self.found.items())},
            "drills": {kind.value: count for kind, count in sorted(self.drills.items())},
        }
