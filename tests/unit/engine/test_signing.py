from __future__ import annotations

import base64
from dataclasses import replace

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from kvfence.engine.admission import PREFIX, Admission, DoorState, Signer, encode

ADMISSION = Admission(
    pool="pool-uid",
    pod="pod-uid",
    nonces=("n-http", "n-rank-0"),
    epoch=3,
    door=DoorState.OPEN,
    cap=1000,
    peers=("10.0.0.1:8998",),
    passes=(),
    expires=1_800_000_000,
)
SEED = bytes(range(32))


def test_an_admission_has_one_form() -> None:
    assert encode(ADMISSION) == (
        b'{"cap":1000,"door":"open","epoch":3,"expires":1800000000,"nonces":["n-http","n-rank-0"],'
        b'"passes":[],"peers":["10.0.0.1:8998"],"pod":"pod-uid","pool":"pool-uid"}'
    )


def test_the_body_carries_the_message_and_a_signature_of_it_behind_the_prefix() -> None:
    signer = Signer.from_seed(SEED)
    body = signer.sign(ADMISSION)
    assert set(body) == {"message", "signature"}
    message, signature = (base64.b64decode(body[name], validate=True) for name in ("message", "signature"))
    assert message == encode(ADMISSION)
    Ed25519PublicKey.from_public_bytes(signer.public_bytes).verify(signature, PREFIX + message)
    with pytest.raises(InvalidSignature):
        Ed25519PublicKey.from_public_bytes(signer.public_bytes).verify(signature, message)


def test_another_key_makes_another_signature() -> None:
    bodies = [Signer.from_seed(bytes([i]) * 32).sign(ADMISSION) for i in range(2)]
    assert bodies[0]["message"] == bodies[1]["message"]
    assert bodies[0]["signature"] != bodies[1]["signature"]


def test_a_changed_admission_has_another_signature() -> None:
    signer = Signer.from_seed(SEED)
    assert signer.sign(ADMISSION)["signature"] != signer.sign(replace(ADMISSION, cap=1001))["signature"]


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_a_seed_of_another_length_is_refused_without_being_quoted(length: int) -> None:
    with pytest.raises(ValueError, match=f"a private key has 32 bytes, not {length}") as refused:
        Signer.from_seed(b"\x5a" * length)
    assert "Z" not in str(refused.value)


def test_a_signer_shows_its_public_key_alone() -> None:
    signer = Signer.from_seed(SEED)
    shown = repr(signer) + str(signer)
    assert base64.b64encode(signer.public_bytes).decode() in shown
    for secret in (SEED.hex(), base64.b64encode(SEED).decode(), repr(SEED)):
        assert secret not in shown
