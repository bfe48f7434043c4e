"""The four classes of finding: what a finding says about the engine, and so what follows from it. Pure.

*Refused* is the client's doing, *Failed* is a lost peer, an abort or a time that ran out: neither says anything about
the engine. *Contained* was caught before the first token: its request ends, and a few of them within a while isolate
the engine. *Escaped* came too late, or shows that a defence is not there: the engine is tainted at once.
"""

from __future__ import annotations

from enum import Enum

from kvfence_engine.integrity.coverage import Mismatch
from kvfence_engine.integrity.tally import Kind


class Finding(str, Enum):
    """What a finding says about the engine."""

    REFUSED = "Refused"
    FAILED = "Failed"
    CONTAINED = "Contained"
    ESCAPED = "Escaped"


_BY_A_CLIENT = frozenset({Mismatch.TOKENS_DIFFER, Mismatch.OTHER_PROMPT})
"""What whoever reaches both legs can bring about: two prompts under one room. Coverage ends every such request, so
that nothing can come of it, and nobody can close an engine with it.
"""


def of(kind: Kind, *, was_verified: bool = False, mismatch: Mismatch | None = None) -> Finding:
    """Return the class of a finding in an engine that enforces the defence which found it.

    Args:
        kind: what was found.
        was_verified: whether the request had been looked at and found right before, so that it may have read this.
        mismatch: for `Kind.COVERAGE`.
    """
    if was_verified or kind in (Kind.HOOK_MISSING, Kind.UNVERIFIED):
        return Finding.ESCAPED
    if kind is Kind.COVERAGE and mismatch in _BY_A_CLIENT:
        return Finding.FAILED
    return Finding.CONTAINED
