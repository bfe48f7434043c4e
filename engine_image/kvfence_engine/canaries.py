"""How a canary names its request, so that the ranks know what it asks of them. Pure.

Only the id of a request reaches every rank on both legs. Ids that begin with `OURS` go with a pass alone, so a user can
have neither a receipt nor a fault.
"""

from __future__ import annotations

OURS = "kvfence-"
"""With this begin the ids of requests that need a pass, whatever follows."""

CANARY = "kvfence-canary-"
"""Asks for a receipt; something random follows, which only who drew it knows."""

DRILL = "kvfence-drill-"
"""Asks for a fault in its own pages, and a receipt: `kvfence-drill-KIND-` and something random."""


def is_ours(rid: object) -> bool:
    """Whether a request with this id, or one of these ids, needs a pass."""
    return any(isinstance(one, str) and one.startswith(OURS) for one in (rid if isinstance(rid, list) else [rid]))


def is_drill(rid: object) -> bool:
    """Whether a request with this id, or one of these ids, asks for a fault."""
    return any(isinstance(one, str) and one.startswith(DRILL) for one in (rid if isinstance(rid, list) else [rid]))


def wants_receipt(rid: object) -> bool:
    """Whether a rank keeps a receipt for a request with this id."""
    return isinstance(rid, str) and rid.startswith((CANARY, DRILL))


def drilled(rid: object) -> str | None:
    """Return the kind of fault that a request asks for; none when it asks for none."""
    if not isinstance(rid, str) or not rid.startswith(DRILL):
        return None
    kind, _, rest = rid.removeprefix(DRILL).partition("-")
    return kind if kind and rest else None
