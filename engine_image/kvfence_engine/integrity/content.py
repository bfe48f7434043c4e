"""What KV was computed from: its namespace and its tokens. Says so in numbers that can be compared and not guessed.

Requests share KV where namespace and tokens are the same, and must not where either differs. Texts of several parts
are framed here by their lengths: end on end, "ab" + "c" would be the same namespace as "a" + "bc".

What is hashed may have been made up by whoever wants two hashes to be equal, so all hashes have a key.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    Numbers = np.ndarray[Any, np.dtype[np.int64]]

PRIME = 2**61 - 1
"""A prime with a power of 2 beside it, so that remainders need no division."""

_DIGESTS = 2**62
_ID_MASK = 2**32 - 1
_UPPER_BITS, _LOWER_BITS = 30, 31
_UPPER, _LOWER = 2**_UPPER_BITS - 1, 2**_LOWER_BITS - 1


def namespace(extra_key: str | None, cache_salt: str | None, lora_id: str | None) -> bytes:
    """Return what must be equal for two requests to share KV: no two different triples give the same bytes."""
    return b"".join(_framed(part) for part in (extra_key, cache_salt, lora_id))


def framed_extra_key(extra_key: str | None, lora_id: str | None) -> str | None:
    """Return an extra key with which SGLang keeps KV of different adapters apart; none when there is nothing to say.

    SGLang appends the id of an adapter to the client's extra key without a frame, so that a client who sends that id
    as extra key, and asks for no adapter, would be given KV of the adapter. The id stays at the end, where SGLang's KV
    events look for it.

    Args:
        extra_key: as SGLang made it, with the id at its end. For an adapter it knows no difference between no extra
            key and an empty one, and so there is none here.
        lora_id: of the adapter.
    """
    if extra_key is None and lora_id is None:
        return None
    return "".join("-" if part is None else f"{len(part)}:{part}" for part in (extra_key, lora_id))


class Contents:
    """Hashes of content, with one key.

    Args:
        key: secret, 1 to 64 bytes. Hashes are equal only where keys are.

    Raises:
        ValueError: for a key of another length.
    """

    def __init__(self, key: bytes) -> None:
        if not 1 <= len(key) <= hashlib.blake2b.MAX_KEY_SIZE:
            raise ValueError(f"a key has 1 to {hashlib.blake2b.MAX_KEY_SIZE} bytes, not {len(key)}")
        self._key = key
        self._powers: Numbers = np.array([1 + self._hash(b"kvfence point", b"") % (PRIME - 1)], np.int64)

    def tags(self, namespace: bytes, tokens: Sequence[int], page_size: int) -> Numbers:
        """Return the tag of each full page: of the namespace and all tokens up to the end of the page.

        With a secret point x for the key and a secret offset for each namespace, the tag of n tokens is offset +
        (token[0] + 1) * x + ... + (token[n - 1] + 1) * x**n modulo `PRIME`. Two prompts of up to n tokens have the
        same tag for at most n of the 2**61 points, which is less than 1 in 2**41 for a million tokens. The 1 lets a
        token 0 count. `PRIME` stands for the remainder 0, which would read as no tag.

        Args:
            namespace: of `namespace()`.
            tokens: ids, of which 32 bits are taken: a list, an array of 64 bits or numpy's. Fewer than 2**30.
            page_size: tokens in a page.

        Returns:
            One int64 from 1 to `PRIME` for each full page, none for what follows the last one.
        """
        self._grow(len(tokens))
        terms = multiply(self._powers[: len(tokens)], (np.asarray(tokens, np.int64) & _ID_MASK) + 1)
        ends = slice(page_size - 1, None, page_size)
        upper, lower = (np.cumsum(half)[ends] for half in (terms >> _LOWER_BITS, terms & _LOWER))
        offset = self._hash(b"kvfence offset", namespace) % PRIME
        return _reduce(_shift(upper) + lower + offset)

    def digest(self, namespace: bytes, tokens: Sequence[int]) -> int:
        """Return what two engines compare to see that they have the same prompt: from 1 to 2**62.

        Args:
            namespace: of `namespace()`.
            tokens: ids of up to 63 bits: a list, an array of 64 bits or numpy's.
        """
        frame = len(namespace).to_bytes(8, "little")
        prompt = np.asarray(tokens, "<i8").tobytes()
        return 1 + self._hash(b"kvfence digest", frame + namespace + prompt) % _DIGESTS

    def _hash(self, purpose: bytes, content: bytes) -> int:
        hashed = hashlib.blake2b(content, digest_size=16, key=self._key, person=purpose)
        return int.from_bytes(hashed.digest(), "little")

    def _grow(self, count: int) -> None:
        """Have at least that many powers of the point, from the first on."""
        while len(self._powers) < count:
            self._powers = np.concatenate([self._powers, multiply(self._powers, self._powers[-1:])])


def multiply(left: Numbers, right: Numbers) -> Numbers:
    """Multiply numbers from 0 to `PRIME` - 1, pair by pair, modulo `PRIME`.

    Factors are taken apart into 30 upper and 31 lower bits, so that nothing reaches 2**63: the largest sum stays more
    than 2**32 below it.
    """
    left_upper, left_lower = left >> _LOWER_BITS, left & _LOWER
    right_upper, right_lower = right >> _LOWER_BITS, right & _LOWER
    middle = left_upper * right_lower + left_lower * right_upper
    return _reduce(2 * left_upper * right_upper + _shift(middle) + left_lower * right_lower)  # 2**62 is 2


def _shift(numbers: Numbers) -> Numbers:
    """Multiply numbers below 2**62 by 2**31 modulo `PRIME`, since 2**61 is 1: at most 2**61 + 2**31 comes out."""
    turned: Numbers = ((numbers & _UPPER) << _LOWER_BITS) + (numbers >> _UPPER_BITS)
    return turned


def _reduce(numbers: Numbers) -> Numbers:
    """Return the remainders of numbers below 2**63. Of a multiple of `PRIME` that is `PRIME`, and 0 of 0 alone."""
    folded: Numbers = (numbers & PRIME) + (numbers >> 61)
    folded -= PRIME * (folded > PRIME)
    return folded


def _framed(text: str | None) -> bytes:
    """Frame a text, or say that there is none. JSON can carry halves of surrogate pairs, which are no UTF-8."""
    if text is None:
        return b"\0"
    content = text.encode("utf-8", "surrogatepass")
    return b"\1" + len(content).to_bytes(8, "little") + content
