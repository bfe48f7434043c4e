"""Advisories that whoever runs kvfence adds: a signed and dated document, from a file or a ConfigMap.

    {"format": "kvfence-advisories/1", "date": "2026-11-30T00:00:00Z", "advisories": [...OSV...]}

Whatever is wrong with it is a sentence in the problems of what comes back. A bad signature takes nothing of it, a bad
entry drops itself alone; neither goes unsaid.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from kvfence.catalogue import documents, signing
from kvfence.catalogue.catalogue import Catalogue, collected
from kvfence.domain.advisories.parsing import moment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

FORMAT = "kvfence-advisories/1"
FIELDS = frozenset({"format", "date", "advisories"})
OLDEST = timedelta(days=30)
AHEAD = timedelta(minutes=5)
"""By how much clocks may differ."""
MOST_BYTES = 1_048_576
"""What a ConfigMap can hold."""
MOST_ENTRIES = 2000


def added(raw: bytes, signature: bytes, public_keys: Sequence[bytes], now: datetime) -> Catalogue:
    """Return what a signed document adds. Never raises.

    Args:
        raw: the document, just as it was signed.
        signature: detached, in base64.
        public_keys: the text of each, PEM or 32 bytes in base64. Two during a rotation: either may have signed.
        now: with its offset from UTC.
    """
    keys, problems = _keys(public_keys)
    refusal = _refusal(raw, signature, keys)
    if refusal is not None:
        return Catalogue(None, (), (*problems, refusal))
    try:
        document = _document(raw)
        date = _date(document["date"])
    except ValueError as error:
        return Catalogue(None, (), (*problems, f"Nothing of the added advisories is taken: {error}"))
    catalogue = collected(document["advisories"], date)
    aged = aging(date, now)
    return replace(catalogue, problems=(*problems, *([] if aged is None else [aged]), *catalogue.problems))


def aging(date: datetime, now: datetime) -> str | None:
    """Return what is wrong with the date of a catalogue, a sentence; none when nothing is."""
    if date - now > AHEAD:
        return (
            f"The added advisories are dated {date.isoformat()}, which is in the future. They count; correct the date, "
            "or the clock here."
        )
    if now - date > OLDEST:
        return (
            f"The added advisories are of {date.date()}, more than {OLDEST.days} days ago. They count; look for newer "
            "ones, and sign them with a date of today even if there are none."
        )
    return None


def _date(value: object) -> datetime:
    try:
        return moment(value, "its date")
    except ValueError as error:
        raise ValueError(f"{error}.") from None


def _keys(texts: Sequence[bytes]) -> tuple[tuple[Ed25519PublicKey, ...], list[str]]:
    keys, problems = [], []
    for number, text in enumerate(texts, start=1):
        try:
            keys.append(signing.public_key(text))
        except ValueError as error:
            problems.append(f"Public key {number} for advisories cannot be used: {error}.")
    return tuple(keys), problems


def _refusal(raw: bytes, signature: bytes, keys: tuple[Ed25519PublicKey, ...]) -> str | None:
    nothing = "Nothing of the added advisories is taken:"
    if len(raw) > MOST_BYTES:
        return f"{nothing} the document has {len(raw)} bytes, and {MOST_BYTES} are allowed."
    if not keys:
        return f"{nothing} there is no public key that could say who signed them."
    if not signing.signed(raw, signature, keys):
        return (
            f"{nothing} the signature was not made by the public key given, or the document was changed after it. Sign "
            "it again: python -m kvfence.catalogue sign."
        )
    return None


def _document(raw: bytes) -> dict[str, Any]:
    """Return the document's fields.

    Raises:
        ValueError: it has not the shape.
    """
    document = documents.read(raw, "the document")
    if not isinstance(document, dict) or set(document) != FIELDS:
        raise ValueError("the document is not an object with just format, date and advisories.")
    if document["format"] != FORMAT:
        raise ValueError(f"the format is not {FORMAT}.")
    entries = document["advisories"]
    if not isinstance(entries, list) or len(entries) > MOST_ENTRIES:
        raise ValueError(f"advisories is not a list of at most {MOST_ENTRIES}.")
    return document
