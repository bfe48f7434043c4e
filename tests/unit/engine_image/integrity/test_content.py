"""Hashes of content against a slow obvious reference in whole numbers of any size."""

from __future__ import annotations

import hashlib
from array import array
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvfence_engine.integrity.content import PRIME, Contents, framed_extra_key, multiply, namespace

KEY = b"a key of these tests"
SPACE = namespace(None, "salt", None)

some_id = st.sampled_from([0, 1, 2**31 - 2, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1]) | st.integers(0, 2**32 - 1)
FACTORS = (0, 1, 2, 2**30 - 1, 2**30, 2**31 - 1, 2**31, 2**32, PRIME - 2**31, PRIME - 2, PRIME - 1)


def hashed(key: bytes, purpose: bytes, content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=16, key=key, person=purpose).digest(), "little")


def slow_tags(key: bytes, space: bytes, tokens: list[int], page_size: int) -> list[int]:
    point = 1 + hashed(key, b"kvfence point", b"") % (PRIME - 1)
    tag = hashed(key, b"kvfence offset", space) % PRIME
    tags = []
    for place, token in enumerate(tokens, 1):
        tag = (tag + (token + 1) * pow(point, place, PRIME)) % PRIME
        if place % page_size == 0:
            tags.append(tag or PRIME)
    return tags


def tags(tokens: Any, page_size: int = 1, space: bytes = SPACE, key: bytes = KEY) -> list[int]:
    return [int(one) for one in Contents(key).tags(space, tokens, page_size)]


@given(st.binary(min_size=1, max_size=64), st.binary(max_size=9), st.lists(some_id, max_size=300), st.integers(1, 17))
def test_tags_are_those_of_the_reference(key: bytes, space: bytes, tokens: list[int], page_size: int) -> None:
    assert tags(tokens, page_size, space, key) == slow_tags(key, space, tokens, page_size)


def test_nothing_overflows_in_a_long_prompt_of_the_largest_ids() -> None:
    tokens = [2**32 - 1] * 70_000
    assert tags(tokens, 1000) == slow_tags(KEY, SPACE, tokens, 1000)


@given(st.lists(st.integers(0, PRIME - 1), max_size=9))
def test_products_are_those_of_whole_numbers(more: list[int]) -> None:
    pairs = list(product([*FACTORS, *more], repeat=2))
    left, right = np.array(pairs, np.int64).T
    assert multiply(left, right).tolist() == [a * b % PRIME for a, b in pairs]


@given(st.lists(some_id, max_size=100), st.integers(0, 100), st.integers(1, 5))
def test_what_follows_a_page_does_not_change_its_tag(tokens: list[int], cut: int, page_size: int) -> None:
    prefix = tags(tokens[:cut], page_size)
    assert len(prefix) == min(cut, len(tokens)) // page_size
    assert tags(tokens, page_size)[: len(prefix)] == prefix


@given(st.lists(some_id, min_size=1, max_size=50), st.data())
def test_a_changed_token_changes_its_page_and_all_that_follow(tokens: list[int], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(tokens) - 1))
    changed = [*tokens[:place], data.draw(some_id.filter(lambda token: token != tokens[place])), *tokens[place + 1 :]]
    same = [a == b for a, b in zip(tags(tokens), tags(changed), strict=True)]
    assert same == [True] * place + [False] * (len(tokens) - place)


def test_tokens_that_change_places_change_the_tag() -> None:
    assert tags([5, 6], 2) != tags([6, 5], 2)


def test_a_token_0_counts() -> None:
    assert tags([0], 1) != tags([0, 0], 2)


@pytest.mark.parametrize("other", [{"space": namespace("salt", None, None)}, {"key": b"another key"}])
def test_another_namespace_or_key_gives_other_tags(other: dict[str, Any]) -> None:
    assert not set(tags([1, 2, 3])) & set(tags([1, 2, 3], **other))


def test_a_prompt_that_ends_in_a_remainder_of_0_has_a_tag_all_the_same() -> None:
    """The last token is the one that brings the sum to 0, which would read as no tag."""

    class Fixed(Contents):
        def _hash(self, purpose: bytes, content: bytes) -> int:
            return 0 if purpose == b"kvfence point" else PRIME - 6  # the point is 1, the offset what 5 + 1 completes

    assert list(Fixed(KEY).tags(SPACE, [5, 1], 1)) == [PRIME, 2]


def test_the_same_contents_serve_long_and_short_prompts() -> None:
    contents = Contents(KEY)
    for count in (3, 100, 7, 1000):
        assert contents.tags(SPACE, range(count), 1).tolist() == slow_tags(KEY, SPACE, list(range(count)), 1)


@pytest.mark.parametrize("form", [list, lambda ids: array("q", ids), np.array, lambda ids: np.array(ids, np.int32)])
def test_ids_come_as_sglang_has_them(form: Any) -> None:
    ids = [7, 0, 8]
    assert tags(form(ids)) == slow_tags(KEY, SPACE, ids, 1)
    assert Contents(KEY).digest(SPACE, form(ids)) == Contents(KEY).digest(SPACE, ids)


@pytest.mark.parametrize("strange", [-1, -(2**63), 2**63 - 1])
def test_an_id_that_no_vocabulary_has_stops_nothing(strange: int) -> None:
    assert tags([strange]) == slow_tags(KEY, SPACE, [strange % 2**32], 1)
    assert Contents(KEY).digest(SPACE, [strange])


@pytest.mark.parametrize("key", [b"", bytes(65)])
def test_a_key_that_is_none_or_too_long_is_refused(key: bytes) -> None:
    with pytest.raises(ValueError, match="1 to 64 bytes"):
        Contents(key)


def test_keys_of_the_shortest_and_the_greatest_length_are_taken() -> None:
    assert Contents(bytes(1)).digest(SPACE, [1]) != Contents(bytes(64)).digest(SPACE, [1])


@given(st.binary(min_size=1, max_size=64), st.binary(max_size=9), st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_digests_are_those_of_the_reference(key: bytes, space: bytes, tokens: list[int]) -> None:
    prompt = b"".join(token.to_bytes(8, "little", signed=True) for token in tokens)
    whole = hashed(key, b"kvfence digest", len(space).to_bytes(8, "little") + space + prompt)
    assert Contents(key).digest(space, tokens) == 1 + whole % 2**62


def test_a_digest_tells_a_namespace_from_tokens() -> None:
    token = b"8 bytes!"
    assert Contents(KEY).digest(token, []) != Contents(KEY).digest(b"", [int.from_bytes(token, "little")])


@pytest.mark.parametrize(("found", "wanted"), [(0, 1), (2**62 - 1, 2**62), (2**62, 1)])
def test_a_digest_reaches_from_one_to_the_largest_number_of_a_tag(found: int, wanted: int) -> None:
    class Fixed(Contents):
        def _hash(self, purpose: bytes, content: bytes) -> int:
            return found

    assert Fixed(KEY).digest(SPACE, [1]) == wanted


def texts(letters: str, longest: int) -> list[str | None]:
    """All texts of these letters, and none."""
    sizes = range(longest + 1)
    return [None, *("".join(text) for size in sizes for text in product(letters, repeat=size))]


def test_no_two_triples_have_the_same_namespace() -> None:
    triples = list(product(texts("\0\1a", 2), repeat=3))
    assert len({namespace(*triple) for triple in triples}) == len(triples)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("ab", "c", None), ("a", "bc", None)),
        (("", None, None), (None, None, None)),
        (("a", None, None), (None, "a", None)),
        (("\ud800", None, None), ("?", None, None)),
        (("\ud83d\ude00", None, None), ("\U0001f600", None, None)),
    ],
)
def test_namespaces_that_look_alike_differ(
    one: tuple[str | None, str | None, str | None], other: tuple[str | None, str | None, str | None]
) -> None:
    assert namespace(*one) != namespace(*other)


def concatenated(extra_key: str | None, lora_id: str | None) -> str | None:
    """Concatenate as SGLang does."""
    return extra_key if lora_id is None else (extra_key or "") + lora_id


def framed(extra_key: str | None, lora_id: str | None) -> str | None:
    return framed_extra_key(concatenated(extra_key, lora_id), lora_id)


def test_no_two_pairs_of_extra_key_and_adapter_have_the_same_framed_key() -> None:
    pairs = [(key, lora) for key, lora in product(texts("-:12", 3), repeat=2) if key is not None or lora is None]
    assert len({framed(*pair) for pair in pairs}) == len(pairs)


@pytest.mark.parametrize("lora_id", ["", "adapter"])
def test_with_an_adapter_an_empty_extra_key_is_none(lora_id: str) -> None:
    assert framed(None, lora_id) == framed("", lora_id)


def test_an_extra_key_that_is_the_id_of_an_adapter_finds_nothing_of_the_adapter() -> None:
    assert concatenated("adapter", None) == concatenated(None, "adapter")
    assert framed("adapter", None) != framed(None, "adapter")


def test_an_extra_key_that_is_the_framed_key_of_an_adapter_finds_nothing_of_the_adapter() -> None:
    assert framed(framed(None, "adapter"), None) != framed(None, "adapter")


def test_the_id_of_an_adapter_stays_at_the_end_and_of_no_adapter_there_is_none() -> None:
    assert str(framed("key", "adapter")).endswith("adapter")
    assert not str(framed("key adapter", None)).endswith("adapter")


def test_without_extra_key_and_adapter_there_is_no_framed_key() -> None:
    assert framed_extra_key(None, None) is None
    assert framed_extra_key("", None) is not None
