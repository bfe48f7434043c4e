"""Faults that a canary asks for in its own pages, while nobody else is let in: each defence must find its own.

A fault is put in just before the look that must find it and taken back just after, so that the request gives its pages
back as any other does. What was found is counted apart, and never blows the fuse.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kvfence_engine import canaries
from kvfence_engine.hooked.holders import draw
from kvfence_engine.integrity.coverage import Mismatch
from kvfence_engine.integrity.tally import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvfence_engine.hooked.holders import Holder
    from kvfence_engine.hooked.pool import Pool

KINDS = (Kind.FOREIGN_PAGE, Kind.UNWRITTEN_PAGE, Kind.OTHER_BYTES, Kind.COVERAGE)
"""Faults that can be asked for; on prefill the first two."""


def asked(rid: object, *, on_canary: bool) -> Kind | None:
    """Return the fault that a request asks for; none when it asks for none that there is, or users are let in."""
    kind = canaries.drilled(rid)
    return next((one for one in KINDS if one.value == kind), None) if on_canary else None


@contextmanager
def fault(pool: Pool, holder: Holder, row: int, end: int) -> Iterator[None]:
    """Have the fault that a holder asks for in its pages, as long as they are looked at."""
    if holder.drill is None or not end:
        yield
        return
    page = pool.pages(row, 0, end)[:1]
    if holder.drill is Kind.COVERAGE:
        holder.mismatch = Mismatch.HANDED_SHORT
    elif holder.drill is Kind.OTHER_BYTES:
        pool.zero(page)  # and they stay so: this request ends, and the next zeroes its pages anyway
    kept: Any = None
    if holder.drill is Kind.FOREIGN_PAGE:
        kept = pool.tags.disguise(page, owner=draw())
    elif holder.drill is Kind.UNWRITTEN_PAGE:
        kept = pool.tags.disguise(page, writer=0)
    try:
        yield
    finally:
        if kept is not None:
            pool.tags.restore(page, kept)
