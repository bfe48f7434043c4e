"""What a document adds, and what is said when it does not: nothing is blocked and nothing is dropped in silence."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from kvfence.catalogue import Catalogue, added, signing
from kvfence.catalogue.adding import MOST_BYTES
from tests.unit.catalogue.signed_documents import KEY, NOW, OTHER_KEY, OTHER_PUBLIC, PUBLIC, addition, signed
from tests.unit.domain.advisories.osv_documents import document

calmly = settings(deadline=None)  # a busy machine is no failure

RAW = addition()
SIGNATURE = signing.sign(RAW, KEY)


def ids(catalogue: Catalogue) -> list[str]:
    """Return what was taken."""
    return [one.id for one in catalogue.advisories]


def only_problem(catalogue: Catalogue) -> str:
    """Return the one thing that is wrong."""
    (problem,) = catalogue.problems
    assert problem.isprintable()
    assert problem.endswith(".")
    return problem


def test_a_signed_document_of_yesterday_is_taken_without_a_word() -> None:
    catalogue = added(RAW, SIGNATURE, [PUBLIC], NOW)
    assert ids(catalogue) == ["KVF-2026-9001"]
    assert (catalogue.problems, catalogue.notes) == ((), ())
    assert catalogue.date == NOW - timedelta(days=1, hours=12)


def test_either_of_two_keys_may_have_signed_during_a_rotation() -> None:
    for keys in ([PUBLIC, OTHER_PUBLIC], [OTHER_PUBLIC, PUBLIC]):
        assert ids(added(RAW, SIGNATURE, keys, NOW)) == ["KVF-2026-9001"]


BAD_SIGNATURES = {
    "none": b"",
    "another key's": signing.sign(RAW, OTHER_KEY),
    "of another document": signing.sign(RAW + b" ", KEY),
    "of the bytes alone, as for another purpose": base64.b64encode(KEY.sign(RAW)),
    "not base64": b"!" * 88,
    "cut short": SIGNATURE[:40],
    "huge": b"A" * 100_000,
    "not ASCII": "é".encode() * 44,
}


@pytest.mark.parametrize("signature", BAD_SIGNATURES.values(), ids=BAD_SIGNATURES)
def test_a_bad_signature_takes_nothing_and_is_said(signature: bytes) -> None:
    catalogue = added(RAW, signature, [PUBLIC], NOW)
    assert (catalogue.advisories, catalogue.date) == ((), None)
    assert "Nothing of the added advisories is taken: the signature" in only_problem(catalogue)


@calmly
@given(st.integers(0, len(RAW) - 1), st.integers(1, 255))
def test_one_changed_byte_takes_nothing(place: int, change: int) -> None:
    changed = bytearray(RAW)
    changed[place] ^= change
    assert added(bytes(changed), SIGNATURE, [PUBLIC], NOW).advisories == ()


BAD_KEYS = {
    "empty": b"",
    "too short": base64.b64encode(bytes(31)),
    "not base64": b"not a key",
    "broken PEM": b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
    "a key of another kind": generate_private_key(SECP256R1())
    .public_key()
    .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
}


@pytest.mark.parametrize("key", BAD_KEYS.values(), ids=BAD_KEYS)
def test_a_key_that_cannot_be_used_is_said_and_the_other_one_still_counts(key: bytes) -> None:
    catalogue = added(RAW, SIGNATURE, [key, PUBLIC], NOW)
    assert ids(catalogue) == ["KVF-2026-9001"]
    assert only_problem(catalogue).startswith("Public key 1 for advisories cannot be used")


def test_without_any_key_nothing_is_taken_and_both_things_are_said() -> None:
    assert "no public key" in only_problem(added(RAW, SIGNATURE, [], NOW))
    catalogue = added(RAW, SIGNATURE, [b"x"], NOW)
    assert catalogue.advisories == ()
    assert len(catalogue.problems) == 2


def test_keys_may_be_as_openssl_writes_them() -> None:
    public = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    private = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    signature = signing.sign(RAW, signing.private_key(private))
    assert ids(added(RAW, signature, [b"\n" + public], NOW)) == ["KVF-2026-9001"]


BAD_DOCUMENTS: dict[str, bytes] = {
    "no JSON": b"{",
    "no text": b"\xff\xfe\x00",
    "a list": b"[]",
    "too deep": b"[" * 100_000,
    "a name twice": RAW.replace(b"{", b'{"date": "2026-11-01T00:00:00Z", ', 1),
    "a number that is none": b'{"format": NaN, "date": 1, "advisories": []}',
    "another format": addition(format="kvfence-advisories/2"),
    "one more field": addition(extra=1),
    "no list": addition(advisories={}),
    "too many": addition(advisories=[0] * 2001),
    "no date": addition(date=None),
    "a date without its hour": addition(date="2026-11-29"),
}


@pytest.mark.parametrize("raw", BAD_DOCUMENTS.values(), ids=BAD_DOCUMENTS)
def test_a_document_of_another_shape_takes_nothing_and_is_said(raw: bytes) -> None:
    catalogue = signed(raw)
    assert catalogue.advisories == ()
    assert "Nothing of the added advisories is taken: " in only_problem(catalogue)


def test_a_document_that_is_too_large_is_not_even_read() -> None:
    catalogue = signed(RAW + b" " * MOST_BYTES)
    assert catalogue.advisories == ()
    assert f"{MOST_BYTES} are allowed" in only_problem(catalogue)


def test_a_bad_entry_drops_itself_alone_and_is_said_by_its_id() -> None:
    bad = document(id="KVF-2026-9002", affected=[])
    catalogue = signed(addition(document(), bad, document(id="KVF-2026-9003")))
    assert ids(catalogue) == ["KVF-2026-9001", "KVF-2026-9003"]
    assert only_problem(catalogue).startswith("Entry 2 is left out. Advisory KVF-2026-9002: ")


@calmly
@given(
    st.lists(st.none() | st.integers() | st.text() | st.just(document()) | st.just(document(affected=[])), max_size=6)
)
def test_every_entry_is_taken_or_said(entries: list[Any]) -> None:
    catalogue = signed(addition(advisories=entries))
    sound = sum(entry == document() for entry in entries)
    assert len(catalogue.advisories) == min(sound, 1)
    assert len(catalogue.advisories) + len(catalogue.problems) == len(entries)


def test_of_two_entries_with_one_id_the_newer_counts_and_it_is_said() -> None:
    newer = document(modified="2026-11-20T00:00:00Z", summary="A fault, once more")
    for entries in ((document(), newer), (newer, document())):
        catalogue = signed(addition(*entries))
        assert [one.summary for one in catalogue.advisories] == ["A fault, once more"]
        assert "KVF-2026-9001 is there twice" in only_problem(catalogue)


AGES = {
    timedelta(days=30): None,
    timedelta(days=30, seconds=1): "more than 30 days ago",
    timedelta(minutes=-5): None,
    timedelta(minutes=-5, seconds=-1): "in the future",
}


@pytest.mark.parametrize(("age", "said"), AGES.items(), ids=str)
def test_the_date_is_a_finding_when_it_is_old_or_to_come_and_the_entries_count(
    age: timedelta, said: str | None
) -> None:
    catalogue = signed(addition(date=(NOW - age).isoformat()))
    assert ids(catalogue) == ["KVF-2026-9001"]
    if said is None:
        assert catalogue.problems == ()
    else:
        assert said in only_problem(catalogue)


@calmly
@given(st.binary(max_size=200), st.binary(max_size=100), st.lists(st.binary(max_size=100), max_size=2))
def test_whatever_comes_something_is_said_and_nothing_raised(raw: bytes, signature: bytes, keys: list[bytes]) -> None:
    catalogue = added(raw, signature, keys, NOW)
    assert catalogue.advisories == ()
    assert catalogue.problems


@calmly
@given(st.binary(max_size=100))
def test_anything_that_is_signed_is_read_or_said(raw: bytes) -> None:
    assert signed(raw).problems
