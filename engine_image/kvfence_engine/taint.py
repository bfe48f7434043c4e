"""What a tainted engine says to its partners, and when they believe it. Pure.

The operator names to each engine the launchers of the other leg and the key of each boot, in an admission that it
signs. So a taint is believed from an engine that runs now and was admitted, and from nobody else; and it needs no
operator to be alive. Said again it means the same: the engine that signed it is tainted for the rest of its boot.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from kvfence_engine import ed25519, signed

if TYPE_CHECKING:
    from collections.abc import Collection

    from kvfence_engine.state import Partner

PREFIX = b"kvfence taint 1\n"
"""Ahead of what is signed, so that a signature made for anything else is none here."""

_KIND = re.compile(r"[A-Za-z]{1,64}")


@dataclass(frozen=True)
class Taint:
    """One engine's word that something escaped in it."""

    kind: str
    """What was found."""
    key: str
    """Public key of its boot, in base64."""
    pod: str
    """UID of its pod."""
    pool: str
    """UID of the InferencePool."""


@dataclass(frozen=True)
class Disbelieved:
    """Why a taint is not believed."""

    reason: str
    sentence: str


def sign(taint: Taint, seed: bytes) -> bytes:
    """Return the body of `POST /taint`.

    Args:
        taint: what is said.
        seed: the private key of the boot, 32 bytes.
    """
    message = _encode(taint)
    return signed.pack(message, ed25519.sign(seed, PREFIX + message))


def judge(body: bytes, pool: str, partners: Collection[Partner]) -> tuple[Partner, Taint] | Disbelieved:
    """Return who says so and what, or why it is not believed.

    Args:
        body: as it came.
        pool: UID of this engine's InferencePool.
        partners: the engines that the operator named.
    """
    try:
        message, signature = signed.unpack(body)
        taint = _decode(message)
    except ValueError as error:
        return Disbelieved("Malformed", f"the taint cannot be read: {error}")
    if taint.pool != pool:
        return Disbelieved("ForeignPool", "the taint is of another pool")
    partner = next((one for one in partners if one.key == taint.key), None)
    if partner is None:
        return Disbelieved("UnknownPartner", "no engine that this one was told of has that key")
    if not ed25519.verify(base64.b64decode(partner.key), PREFIX + message, signature):
        return Disbelieved("Forged", "the key of that engine did not make the signature")
    return partner, taint


def _encode(taint: Taint) -> bytes:
    return json.dumps(asdict(taint), sort_keys=True, separators=(",", ":")).encode()


def _decode(message: bytes) -> Taint:
    try:
        taint = Taint(**json.loads(message))
    except (TypeError, RecursionError) as error:
        raise ValueError("the fields are not those of a taint") from error
    if not all(isinstance(text, str) for text in vars(taint).values()) or not _KIND.fullmatch(taint.kind):
        raise ValueError("a field is no text, or the kind is not one word")
    if _encode(taint) != message:
        raise ValueError("it is not in the one form that a taint has")
    return taint
