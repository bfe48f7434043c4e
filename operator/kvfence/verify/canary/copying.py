"""What a stand-in generates: like the copy model of the stage, it goes on with what followed its latest tokens before.

Tokens are characters of a string, so that a whole KV cache can be searched at once. The usual tokenizer makes one token
of each character. Ids of tokens lie beyond what text has. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable


class Tokenizer(Protocol):
    """Makes a string of tokens of a text, one character for each token, and text of it again."""

    def encode(self, text: str) -> str:
        """Return the tokens of a text."""
        ...

    def decode(self, tokens: str) -> str:
        """Return what tokens say."""
        ...


LOOK_BACK = 5
"""Tokens that take part in a match, as in the copy model."""

EMPTY = "\0"
"""A place in the KV cache that nobody has written yet, and the token that stands for a prompt that was refused."""

BEGIN = "\2"
"""What the tokenizer puts in front of a text."""

NOTHING = "."
"""What is generated where nothing matches."""

_IDS = 0x20000
_PIECES = 0xF0000
_IDS_AT_MOST = 0x8000
_NO_TEXT = "\ufffd"


class Characters:
    """The tokenizer of the copy model: one token per character."""

    def encode(self, text: str) -> str:
        """Return the tokens of a text."""
        return text

    def decode(self, tokens: str) -> str:
        """Return what tokens say; what has no text is shown as such."""
        return "".join(_NO_TEXT if ord(token) >= _IDS else token for token in tokens if token not in (EMPTY, BEGIN))


class Words:
    """A tokenizer with one token for each word, the space before it included, as many real ones nearly have."""

    def __init__(self) -> None:
        self._words: list[str] = []

    def encode(self, text: str) -> str:
        """Return one token per word."""
        tokens = []
        for word in re.findall(r" ?[^ ]+| ", text):
            if word not in self._words:
                self._words.append(word)
            tokens.append(chr(_PIECES + self._words.index(word)))
        return "".join(tokens)

    def decode(self, tokens: str) -> str:
        """Return what tokens say; what has no text is shown as such."""
        return "".join(self._word(token) for token in tokens if token not in (EMPTY, BEGIN))

    def _word(self, token: str) -> str:
        place = ord(token) - _PIECES
        return self._words[place] if 0 <= place < len(self._words) else _NO_TEXT


def of_ids(ids: Iterable[int]) -> str:
    """Return the tokens with these ids."""
    return "".join(chr(_IDS + one % _IDS_AT_MOST) for one in ids)


def go_on(held: str, count: int) -> str:
    """Return the next tokens after a KV cache that holds these."""
    said = held
    for _ in range(count):
        said += _next(said)
    return said[len(held) :]


def _next(said: str) -> str:
    """Return what most often followed the longest match; a match of the latest token alone is one."""
    for size in range(min(LOOK_BACK, len(said) - 1), 0, -1):
        followers = Counter(_followers(said, said[-size:]))
        if followers:
            return followers.most_common(1)[0][0]
    return NOTHING


def _followers(said: str, tail: str) -> list[str]:
    found = []
    at = said.find(tail)
    while at != -1 and at + len(tail) < len(said):
        found.append(said[at + len(tail)])
        at = said.find(tail, at + 1)
    return found
