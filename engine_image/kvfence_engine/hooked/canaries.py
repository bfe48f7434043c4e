"""The requests of canaries in one rank: which fault each asks for, and the receipts that are kept of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvfence_engine import canaries
from kvfence_engine.hooked import drills
from kvfence_engine.integrity.receipts import Receipt, Receipts
from kvfence_engine.state import Door

if TYPE_CHECKING:
    from kvfence_engine.hooked.holders import Holder
    from kvfence_engine.integrity.tally import Kind
    from kvfence_engine.state import SharedState


class Canaries:
    """Of one rank. Before `begin` no request is one.

    Args:
        state: the boot's.
    """

    def __init__(self, state: SharedState) -> None:
        self._state = state
        self._receipts = Receipts()
        self._rank = 0
        self._leg = ""

    def begin(self, rank: int, leg: str) -> None:
        """Say which rank of which leg this is."""
        self._rank, self._leg = rank, leg

    def drill(self, request: Any) -> Kind | None:
        """Return the fault that a request asks for; nothing of the state is read for a user's."""
        if not canaries.is_drill(request.rid):
            return None
        return drills.asked(request.rid, on_canary=self._state.grant().door is Door.CANARY)

    def keep(self, request: Any, holder: Holder) -> None:
        """Keep the receipt of a request that asks for one."""
        if not canaries.wants_receipt(request.rid):
            return
        handed = holder.handed
        receipt = Receipt(
            rid=request.rid,
            room=int(request.bootstrap_room or 0),
            leg=self._leg,
            rank=self._rank,
            tokens=len(request.origin_input_ids),
            pages=holder.pages,
            pages_verified=holder.pages_verified,
            handed_over=None if handed is None else (handed.start, handed.end, handed.tokens),
            bytes=holder.bytes,
            verified=holder.was_verified,
            found={kind.value: count for kind, count in sorted(holder.found.items())},
        )
        self._state.set_receipts(self._rank, self._receipts.add(receipt))
