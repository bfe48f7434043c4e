"""Ed25519 signatures of catalogues, detached and in base64; keys as openssl writes them, or 32 bytes in base64.

`openssl genpkey -algorithm ed25519 -out private.pem` makes a key, and `openssl pkey -in private.pem -pubout` its public
half.
"""

from __future__ import annotations

import base64
import binascii

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

PREFIX = b"kvfence advisories 1\n"
"""Ahead of what is signed, so that a signature made for anything else is none here."""
KEY_BYTES = 32
SIGNATURE_BYTES = 64
MOST_BYTES = 4096
"""Of the text of a key or signature."""


def public_key(text: bytes) -> Ed25519PublicKey:
    """Return a public key.

    Raises:
        ValueError: it is none. The message quotes nothing of it.
    """
    if text.lstrip().startswith(b"-----") and len(text) <= MOST_BYTES:
        try:
            key = load_pem_public_key(text)
        except (ValueError, UnsupportedAlgorithm):
            key = None
        if isinstance(key, Ed25519PublicKey):
            return key
    raw = _decoded(text, KEY_BYTES)
    if raw is None:
        raise ValueError("it is no public key of Ed25519, neither PEM nor 32 bytes in base64")
    return Ed25519PublicKey.from_public_bytes(raw)


def private_key(text: bytes) -> Ed25519PrivateKey:
    """Return a private key.

    Raises:
        ValueError: it is none, or needs a password. The message quotes nothing of it.
    """
    if text.lstrip().startswith(b"-----") and len(text) <= MOST_BYTES:
        try:
            key = load_pem_private_key(text, None)
        except (ValueError, TypeError, UnsupportedAlgorithm):  # TypeError: it needs a password
            key = None
        if isinstance(key, Ed25519PrivateKey):
            return key
    raw = _decoded(text, KEY_BYTES)
    if raw is None:
        raise ValueError("it is no private key of Ed25519 without a password, neither PEM nor 32 bytes in base64")
    return Ed25519PrivateKey.from_private_bytes(raw)


def encoded(key: Ed25519PublicKey) -> bytes:
    """Return a public key in base64."""
    return base64.b64encode(key.public_bytes_raw())


def sign(raw: bytes, key: Ed25519PrivateKey) -> bytes:
    """Return the signature of a document, in base64 with a line end."""
    return base64.b64encode(key.sign(PREFIX + raw)) + b"\n"


def signed(raw: bytes, signature: bytes, keys: tuple[Ed25519PublicKey, ...]) -> bool:
    """Whether one of the keys signed just these bytes."""
    decoded = _decoded(signature, SIGNATURE_BYTES)
    return decoded is not None and any(_verified(key, decoded, raw) for key in keys)


def _verified(key: Ed25519PublicKey, signature: bytes, raw: bytes) -> bool:
    try:
        key.verify(signature, PREFIX + raw)
    except InvalidSignature:
        return False
    return True


def _decoded(text: bytes, size: int) -> bytes | None:
    if len(text) > MOST_BYTES:
        return None
    try:
        raw = base64.b64decode(text.strip(), validate=True)
    except binascii.Error:
        return None
    return raw if len(raw) == size else None
