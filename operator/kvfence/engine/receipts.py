"""What a launcher says on `GET /receipt`, checked like any answer from a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvfence.domain.receipts import Receipt
from kvfence.engine import attestation, fields

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_RECEIPTS = 256
"""One for each rank."""
_LEGS = ("prefill", "decode")
_ROOMS = 2**63


def parse_receipts(raw: bytes) -> tuple[Receipt, ...]:
    """Return the receipts of one request, in the order of their ranks.

    Raises:
        ValueError: when they are none. The message names the field.
    """
    said = fields.read_object(raw, "the answer").get("receipts")
    if not isinstance(said, list) or not 0 < len(said) <= MAX_RECEIPTS:
        raise ValueError(f"receipts is not a list of 1 to {MAX_RECEIPTS}")
    return tuple(sorted((_receipt(one) for one in said), key=lambda one: one.rank))


def _receipt(said: Any) -> Receipt:
    if not isinstance(said, dict):
        raise ValueError("a receipt is not an object")  # noqa: TRY004 - of the answer, not of our code
    leg, verified, found = said.get("leg"), fields.truth(said.get("verified")), attestation.found(said.get("found"))
    room = said.get("room")
    if leg not in _LEGS or verified is None or found is None or type(room) is not int or not 0 <= room < _ROOMS:
        raise ValueError("leg, room, verified or found of a receipt is not what it should be")
    over = said.get("handedOver")
    return Receipt(
        room=room,
        leg=leg,
        rank=_number(said, "rank"),
        tokens=_number(said, "tokens"),
        pages=_number(said, "pages"),
        pages_verified=_number(said, "pagesVerified"),
        handed_over=None if over is None else _handed(over),
        bytes=_number(said, "bytes"),
        verified=verified,
        found=found,
    )


def _handed(said: object) -> tuple[int, int, int]:
    if not isinstance(said, dict):
        raise ValueError("handedOver is not an object")  # noqa: TRY004 - of the answer, not of our code
    return _number(said, "start"), _number(said, "end"), _number(said, "tokens")


def _number(said: Mapping[str, object], name: str) -> int:
    value = fields.number(said.get(name))
    if value is None:
        raise ValueError(f"{name} of a receipt is not a whole number from 0")
    return value
