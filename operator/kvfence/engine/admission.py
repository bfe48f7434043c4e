"""What the operator says to a door: admissions, signed.

The engine's part, `kvfence_engine.admission`, decides what is accepted. The operator may not import it, since they are
released apart; `tests/contract` holds the two against each other.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from kvfence.domain.engines import DoorState, Partner

__all__ = ["PREFIX", "SEED_BYTES", "Admission", "DoorState", "Partner", "Signer", "encode"]

PREFIX = b"kvfence admission 1\n"
"""Ahead of what is signed, so that a signature made for anything else is none here."""

SEED_BYTES = 32
"""Of an Ed25519 private key."""


@dataclass(frozen=True)
class Admission:
    """One decision about one boot."""

    pool: str
    """UID of the InferencePool."""
    pod: str
    """UID of the pod."""
    nonces: tuple[str, ...]
    """Of all processes of the boot, in the order in which the launcher reports them."""
    epoch: int
    """Greater than that of every admission before."""
    door: DoorState
    """How the door stands afterwards."""
    cap: int
    """Tokens of context that the pool advertises; at least 8."""
    peers: tuple[str, ...]
    """`host:port` of the prefill engines whose KV may be asked for."""
    passes: tuple[str, ...]
    """SHA-256 in hex of passes for canaries, each good for one request."""
    expires: int
    """Seconds since 1970, by the engine's clock."""
    partners: tuple[Partner, ...] = ()
    """Left out of the message when there are none: an older kvfence-engine does not know them."""


def encode(admission: Admission) -> bytes:
    """Return the one form that an admission has: JSON with sorted keys and no spaces."""
    fields = asdict(admission)
    if not admission.partners:
        del fields["partners"]
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


class Signer:
    """Signs with one Ed25519 key. Its `repr` shows which, by the public half."""

    __slots__ = ("_key",)

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @classmethod
    def from_seed(cls, seed: bytes) -> Signer:
        """Return the signer of a private key.

        Args:
            seed: its 32 bytes.

        Raises:
            ValueError: when they are not 32. The message quotes nothing of them.
        """
        if len(seed) != SEED_BYTES:
            raise ValueError(f"a private key has {SEED_BYTES} bytes, not {len(seed)}")
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    def __repr__(self) -> str:
        return f"Signer(public={base64.b64encode(self.public_bytes).decode()})"

    @property
    def public_bytes(self) -> bytes:
        """The public key, as engines get it."""
        return self._key.public_key().public_bytes_raw()

    def sign(self, admission: Admission) -> dict[str, str]:
        """Return the body of `POST /admission`."""
        message = encode(admission)
        signature = self._key.sign(PREFIX + message)
        return {"message": base64.b64encode(message).decode(), "signature": base64.b64encode(signature).decode()}
