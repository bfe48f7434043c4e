"""Documents that add advisories, and keys to sign them with."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from kvfence.catalogue import Catalogue, added, signing
from tests.unit.domain.advisories.osv_documents import document

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
PUBLIC = base64.b64encode(KEY.public_key().public_bytes_raw())
OTHER_PUBLIC = base64.b64encode(OTHER_KEY.public_key().public_bytes_raw())


def addition(*entries: Any, **changed: Any) -> bytes:
    """Return a document with entries, one sound one without."""
    fields = {"format": "kvfence-advisories/1", "date": "2026-11-29T00:00:00Z", "advisories": entries or [document()]}
    return json.dumps(fields | changed).encode()


def signed(raw: bytes, *, now: datetime = NOW) -> Catalogue:
    """Return what a well-signed document adds."""
    return added(raw, signing.sign(raw, KEY), [PUBLIC], now)
