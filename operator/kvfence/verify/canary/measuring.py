"""Texts of a known number of tokens, for targets whose tokenizer is not known and which take no ids of tokens.

A text is so many numbers of one digit, then the lead: whoever answers with a marker has read another's KV. For all
tokenizers that we know each digit with the space before it is as many tokens as the next one, so that two short
questions tell how long any such text is; a third one tells whether that holds. What the server counted is what it is
measured by: a server that miscounts evenly is not caught here, see `prompt_tokens`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvfence.verify import markers
from kvfence.verify.canary import people

if TYPE_CHECKING:
    import random

    from kvfence.verify.canary.session import Session

DIGITS = "23456789"

SHORT = (5, 6, 23)
"""Digits of the texts by which it is measured."""


@dataclass(frozen=True, slots=True)
class Measure:
    """How many tokens a text of digits has."""

    base: int
    """Of no digit: the lead, and what the tokenizer puts in front."""
    each: int
    """Of one digit with its space; from 1."""

    @property
    def begin(self) -> int | None:
        """What a tokenizer of one token per character puts in front; none for another tokenizer."""
        begin = self.base - len(markers.LEAD) + 1  # before the first digit there is no space
        return begin if self.each == 2 and begin in (0, 1) else None

    def digits(self, tokens: int) -> int:
        """Return how many digits the longest text has that is no longer than so many tokens; below 1 for none."""
        return (tokens - self.base) // self.each

    def tokens(self, digits: int) -> int:
        """Return how many tokens a text of so many digits has."""
        return self.base + self.each * digits

    def at_most(self, tokens: int) -> int | None:
        """Return how many tokens the longest text has that is no longer than this; none when there is no such text."""
        if self.begin is not None and tokens - self.begin > len(markers.LEAD):
            return tokens
        return None if self.digits(tokens) < 1 else self.tokens(self.digits(tokens))

    def text(self, tokens: int, chance: random.Random) -> str:
        """Return a text of exactly so many tokens that ends with the lead.

        Raises:
            ValueError: when there is none; see `at_most`.
        """
        if self.at_most(tokens) != tokens:
            raise ValueError(f"no text of digits has {tokens} tokens")
        if self.begin is not None:
            return numbers(tokens, chance)[: tokens - self.begin - len(markers.LEAD)] + markers.LEAD
        return numbers(self.digits(tokens), chance) + markers.LEAD


def numbers(count: int, chance: random.Random) -> str:
    """Return so many digits with spaces between; no two texts of some length are the same, so that none is cached."""
    return " ".join(chance.choices(DIGITS, k=count))


async def measure(session: Session) -> Measure | str:
    """Return how texts are counted, or in words why that cannot be told.

    Raises:
        BudgetSpentError: when it would cost more than is left.
    """
    counted: list[int] = []
    for digits in SHORT:
        text = numbers(digits, session.chance) + markers.LEAD
        asked = await people.ask(session, f"M{len(counted) + 1}", f"a text of {digits} digits", text, 1)
        count = asked.last.prompt_tokens
        if asked.last.fault is not None or count is None:
            return f"a short text was not answered with a count of its tokens ({people.statuses(asked)})"
        counted.append(count)
    each = counted[1] - counted[0]
    measured = Measure(counted[0] - each * SHORT[0], each)
    if each < 1 or measured.base < 0 or measured.tokens(SHORT[2]) != counted[2]:
        lengths = ", ".join(map(str, SHORT))
        return (
            f"texts of {lengths} digits counted {counted[0]}, {counted[1]} and {counted[2]} tokens, which is not even"
        )
    return measured
