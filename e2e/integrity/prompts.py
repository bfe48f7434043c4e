"""What users write. Pure.

The copy model goes on with what followed its latest tokens anywhere in its KV, and takes the longer match. So users A
say ` SECRET-` and a marker over and over, and user B, who has a marker of its own behind ` MARKET-`, ends with
` SECRET`. What both words have in common is the shorter match, which the model takes as long as there is nothing of
A's. The dash is missing since prefill answers with the first token: what comes after that is read by decode.

Markers have eight characters here, so that with their lead they fill a page of 16 tokens: each page of A's but the
first holds a whole marker, and one page is enough to give it away. The tokenizer makes one token of each character and
one to begin with; places are counted in tokens, from 0.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvfence.verify import markers

if TYPE_CHECKING:
    import random

PAGE = 16
LENGTH = 8
"""Characters of a marker."""

OWN_LEAD = " MARKET-"
START = " BEGIN="
_BEGIN_TOKENS = 1
_RUN = 4
_NONCE = 7
"""Characters ahead of all others: no two prompts have a first page in common, nor anything in a prefix cache."""


@dataclass(frozen=True)
class Prompt:
    """What is asked, and what a pair that works goes on with."""

    text: str
    expected: str = ""
    """How a right answer begins."""
    own_at: int = 0
    """Where the asker's own marker begins; on a page of its own."""

    @property
    def tokens(self) -> int:
        """How many it has."""
        return len(self.text) + _BEGIN_TOKENS


def planting(marker: str, pages: int, chance: random.Random) -> Prompt:
    """User A's: after a first page, so many pages that each hold the marker and its lead, and half a page of marker."""
    said = markers.planting_prompt(marker, pages * PAGE)
    return Prompt(_nonce(chance) + said, expected=markers.LEAD + marker)


def asking(own: str, tokens: int, chance: random.Random, own_at: int = 8 * PAGE) -> Prompt:
    """User B's: its own marker on a page of its own, and the word behind which others have theirs at the end."""
    before = _filled(_nonce(chance), own_at - len(OWN_LEAD)) + OWN_LEAD
    end, dash = markers.LEAD[:-1], markers.LEAD[-1]
    return Prompt(_filled(before + own, tokens - len(end)) + end, expected=dash + own, own_at=own_at)


def breaking_off(tokens: int, kept: int, chance: random.Random) -> Prompt:
    """User B's for an engine that loses a part of prompts: `kept` tokens from the front end within the word.

    What is kept goes on with the rest of the word, as the word before it does, and behind that is what A said. The word
    before it stands behind the first pages, which some engines lose.
    """
    begun = markers.LEAD[:4]
    text = _filled(_nonce(chance), 4 * PAGE) + markers.LEAD
    return Prompt(_filled(_filled(text, kept - len(begun)) + begun, tokens))


def going_on(own: str, tokens: int, chance: random.Random, goes_on: int = 80) -> Prompt:
    """User B's with a long answer: `goes_on` letters are repeated before the word comes, and B's own marker."""
    letters = _unambiguous(goes_on, chance)
    core = START + letters + markers.LEAD
    own_at = (tokens - 2 * PAGE - LENGTH) // PAGE * PAGE
    before = _filled(_nonce(chance), own_at - len(core)) + core
    text = _filled(before + own, tokens - len(START)) + START
    return Prompt(text, expected=letters + markers.LEAD + own, own_at=own_at)


def _unambiguous(count: int, chance: random.Random) -> str:
    """Return letters of which no four in a row come twice: behind those the copy model could go on in two ways."""
    while True:
        letters = "".join(chance.choices(string.ascii_lowercase, k=count))
        runs = [letters[at : at + _RUN] for at in range(count - _RUN + 1)]
        if len(set(runs)) == len(runs):
            return letters


def _nonce(chance: random.Random) -> str:
    return "".join(chance.choices(string.ascii_lowercase, k=_NONCE))


def _filled(text: str, tokens: int) -> str:
    """Return the text with plain words behind it, so that the next character is the token of this number."""
    return text + markers.filler(tokens - _BEGIN_TOKENS - len(text))
