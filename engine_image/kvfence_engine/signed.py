"""What comes to the launcher with a signature: `{"message": BASE64, "signature": BASE64}`."""

from __future__ import annotations

import base64
import binascii
import json


def pack(message: bytes, signature: bytes) -> bytes:
    """Return the body."""
    fields = {"message": base64.b64encode(message).decode(), "signature": base64.b64encode(signature).decode()}
    return json.dumps(fields).encode()


def unpack(body: bytes) -> tuple[bytes, bytes]:
    """Return message and signature.

    Raises:
        ValueError: when the body has not both, in base64.
    """
    try:
        match json.loads(body):
            case {"message": str(message), "signature": str(signature)}:
                return base64.b64decode(message, validate=True), base64.b64decode(signature, validate=True)
    except (ValueError, RecursionError):
        pass
    raise ValueError('the body is not {"message": BASE64, "signature": BASE64}')


def public_key(text: str | bytes) -> bytes | None:
    """Return the key that stands in base64, none when it is none."""
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return None
