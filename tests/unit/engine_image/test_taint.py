"""A taint is believed from an engine that the operator named, in its own words, and from nobody else."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st

from kvfence_engine import ed25519, signed, taint
from kvfence_engine.state import Partner
from kvfence_engine.taint import Disbelieved, Taint

SEED, OTHER_SEED = bytes(range(32)), bytes(32)
KEY = base64.b64encode(ed25519.public_key(SEED)).decode()
PARTNER = Partner("10.0.0.1:8901", "10.0.0.1:8998", KEY)
SAID = Taint("ForeignPage", KEY, "pod-of-partner", "pool-uid")


def judged(body: bytes, partners: tuple[Partner, ...] = (PARTNER,)) -> str:
    verdict = taint.judge(body, "pool-uid", partners)
    return verdict.reason if isinstance(verdict, Disbelieved) else "believed"


def signed_by(seed: bytes, message: bytes, prefix: bytes = taint.PREFIX) -> bytes:
    return signed.pack(message, ed25519.sign(seed, prefix + message))


def encoded(**changes: object) -> bytes:
    return json.dumps({**asdict(SAID), **changes}, sort_keys=True, separators=(",", ":")).encode()


def test_a_partner_is_believed() -> None:
    other = Partner("10.0.0.2:8901", "", "x")
    assert taint.judge(taint.sign(SAID, SEED), "pool-uid", (other, PARTNER)) == (PARTNER, SAID)


def test_another_implementation_finds_the_signature_right() -> None:
    message, signature = signed.unpack(taint.sign(SAID, SEED))
    assert message == encoded()
    Ed25519PublicKey.from_public_bytes(base64.b64decode(KEY)).verify(signature, taint.PREFIX + message)


def test_nobody_else_is_believed() -> None:
    stranger = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
    assert judged(taint.sign(SAID, OTHER_SEED)) == "Forged"
    assert judged(signed_by(SEED, encoded(), b"kvfence admission 1\n")) == "Forged", "signed as something else"
    assert judged(signed.pack(encoded(), b"")) == "Forged"
    assert judged(taint.sign(SAID, SEED), ()) == "UnknownPartner"
    of_a_stranger = replace(SAID, key=base64.b64encode(stranger).decode())
    assert judged(taint.sign(of_a_stranger, SEED)) == "UnknownPartner"
    assert judged(taint.sign(replace(SAID, pool="another"), SEED)) == "ForeignPool"


OTHERWISE = {
    "spaces": json.dumps(asdict(SAID), sort_keys=True).encode(),
    "another order": json.dumps(asdict(SAID), separators=(",", ":")).encode(),
    "a field twice": encoded()[:-1] + b',"pool":"pool-uid"}',
    "a field more": encoded(more=1),
    "a field less": json.dumps({"kind": "A"}).encode(),
    "a number": encoded(pod=1),
    "a list": b"[1]",
    "no kind": encoded(kind=""),
    "two words": encoded(kind="two words"),
    "a line": encoded(kind="ForeignPage\nkvfence-engine: all is well"),
    "a long kind": encoded(kind="A" * 65),
    "no UTF-8": b"\xff\xfe\x00",
    "nested": b"[" * 100_000,
    "nested in a field": encoded(kind=json.loads("[" * 500 + "]" * 500)),
}


@pytest.mark.parametrize("message", OTHERWISE.values(), ids=OTHERWISE.keys())
def test_what_is_signed_but_no_taint_is_not_read(message: bytes) -> None:
    assert judged(signed_by(SEED, message)) == "Malformed"


BODIES = st.binary(max_size=200) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["message", "signature", "kind"]), inner, max_size=3)
    ),
).map(lambda value: json.dumps(value).encode())


@settings(deadline=None)
@given(BODIES, st.booleans())
def test_no_body_raises_or_is_believed(body: bytes, inside: bool) -> None:
    assert judged(signed_by(SEED, body) if inside else body) == "Malformed"
    assert judged(b"[" * 100_000) == "Malformed"
