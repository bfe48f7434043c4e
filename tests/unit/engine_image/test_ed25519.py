"""Signatures are accepted exactly when the standard's own examples and another implementation say so."""

from __future__ import annotations

import hashlib

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st

from kvfence_engine import ed25519

RFC_8032 = {
    "7.1 test 1": (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        b"",
        (
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
            "d25bf5f0595bbe24655141438e7a100b"
        ),
    ),
    "7.1 test 2": (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        b"\x72",
        (
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
            "387b2eaeb4302aeeb00d291612bb0c00"
        ),
    ),
    "7.1 test 3": (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        b"\xaf\x82",
        (
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659"
            "4a7c15e9716ed28dc027beceea1ec40a"
        ),
    ),
    "7.1 test SHA(abc)": (
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        hashlib.sha512(b"abc").digest(),
        (
            "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e030"
            "3dca179c138ac17ad9bef1177331a704"
        ),
    ),
}
SECRETS = (
    "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
    "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
    "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
    "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
)
"""Private keys of the same examples, in the same order."""
ORDER = 2**252 + 27742317777372353535851937790883648493


@pytest.mark.parametrize(("key", "message", "signature"), RFC_8032.values(), ids=RFC_8032.keys())
def test_the_standard_s_examples_are_accepted(key: str, message: bytes, signature: str) -> None:
    assert ed25519.verify(bytes.fromhex(key), message, bytes.fromhex(signature))


@pytest.mark.parametrize(("secret", "name"), list(zip(SECRETS, RFC_8032, strict=True)), ids=RFC_8032.keys())
def test_the_standard_s_examples_are_made(secret: str, name: str) -> None:
    key, message, signature = RFC_8032[name]
    assert ed25519.public_key(bytes.fromhex(secret)).hex() == key
    assert ed25519.sign(bytes.fromhex(secret), message).hex() == signature


@settings(max_examples=60, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(max_size=300))
def test_it_signs_as_another_implementation_does(secret: bytes, message: bytes) -> None:
    private = Ed25519PrivateKey.from_private_bytes(secret)
    assert ed25519.public_key(secret) == private.public_key().public_bytes_raw()
    assert ed25519.sign(secret, message) == private.sign(message)


@pytest.mark.parametrize("seed", [b"", bytes(31), bytes(64)])
def test_a_private_key_of_another_length_signs_nothing(seed: bytes) -> None:
    with pytest.raises(ValueError, match="a private key has 32 bytes"):
        ed25519.sign(seed, b"")


def openssl_says(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


@settings(max_examples=60, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(max_size=300), st.integers(0, 96 * 8 + 1))
def test_it_agrees_with_another_implementation_about_signatures_and_one_bit_of_difference(
    secret: bytes, message: bytes, flipped: int
) -> None:
    private = Ed25519PrivateKey.from_private_bytes(secret)
    public, signature = private.public_key().public_bytes_raw(), private.sign(message)
    assert ed25519.verify(public, message, signature)
    both = bytearray(public + signature)
    if flipped < 96 * 8:
        both[flipped // 8] ^= 1 << flipped % 8
    else:
        message += b"!"
    key, changed = bytes(both[:32]), bytes(both[32:])
    assert not ed25519.verify(key, message, changed)
    assert not openssl_says(key, message, changed)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=70), st.binary(max_size=40), st.binary(max_size=70))
def test_no_bytes_raise_and_none_of_them_are_a_signature(key: bytes, message: bytes, signature: bytes) -> None:
    assert not ed25519.verify(key, message, signature)
    assert not ed25519.verify(key[:32].ljust(32, b"\0"), message, signature[:64].ljust(64, b"\0"))


def test_a_signature_s_second_form_is_refused() -> None:
    key, message, signature = RFC_8032["7.1 test 2"]
    first, scalar = bytes.fromhex(signature)[:32], int.from_bytes(bytes.fromhex(signature)[32:], "little")
    second = first + (scalar + ORDER).to_bytes(32, "little")  # the same number, modulo the order of the group
    assert not ed25519.verify(bytes.fromhex(key), message, second)


def test_a_key_of_small_order_is_refused() -> None:
    # The neutral element: with it, R = 0 and S = 0 would be a signature of any message.
    neutral = (1).to_bytes(32, "little")
    assert openssl_says(neutral, b"anything", neutral + bytes(32)), "the attack works elsewhere"
    assert not ed25519.verify(neutral, b"anything", neutral + bytes(32))
