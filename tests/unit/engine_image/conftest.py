"""An admission as the operator would make it, and the boot that it is for."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from kvfence_engine import admission
from kvfence_engine.admission import Admission, Boot
from kvfence_engine.state import Door

BOOT = Boot("pool-uid", "pod-uid", ("n-http", "n-rank-0", "n-rank-1"), 1024)


@dataclass
class Operator:
    """Signs as the operator does."""

    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    @property
    def public(self) -> bytes:
        return self.key.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        return self.key.sign(admission.PREFIX + message)

    def body(self, admitted: Admission) -> bytes:
        message = admission.encode(admitted)
        parts = {"message": message, "signature": self.sign(message)}
        return json.dumps({name: base64.b64encode(part).decode() for name, part in parts.items()}).encode()


@pytest.fixture
def operator() -> Operator:
    return Operator()


@pytest.fixture
def admit() -> Callable[..., Admission]:
    """Call it with what differs from an admission that fits `BOOT`."""
    fits = Admission(
        pool=BOOT.pool,
        pod=BOOT.pod,
        nonces=BOOT.nonces,
        epoch=1,
        door=Door.OPEN,
        cap=1000,
        peers=("10.0.0.1:8998",),
        passes=(),
        expires=int(time.time()) + 60,
    )
    return lambda **changes: replace(fits, **changes)
