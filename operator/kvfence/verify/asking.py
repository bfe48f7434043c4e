"""How a check asks a pair: with a room and a single-use pass of its own for each question, shown to both legs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kvfence.domain.asking import ROOMS, Answer, Pair, PairAnswer, Question

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Mapping


class Asker(Protocol):
    """Asks both legs at once, as `kvfence.engine.pair.Client` does; raises only when it is cancelled."""

    async def ask_leg(self, pair: Pair, question: Question, room: int, leg: str) -> Answer:
        """Return what one leg answered, and leave the other."""
        ...

    async def ask(self, pair: Pair, question: Question, room: int, seconds: float | None = None) -> PairAnswer:
        """Return what both legs answered, within so many seconds."""
        ...


@dataclass(frozen=True)
class Subject:
    """A directed pair."""

    name: str
    """For people, such as `pod a with pod b`."""
    pair: Pair
    model: str
    """As it is served."""


@dataclass(frozen=True)
class Limits:
    """What the pair was measured to hold, in tokens."""

    cap: int
    """Of context, as the doors have it."""
    requested_tokens: int
    """Of context, as the engines were started with."""
    prefill_pool: int
    """The smallest KV pool of the prefill engine's ranks."""
    decode_pool: int
    page_size: int

    @property
    def longest(self) -> int:
        """How many tokens the longest prompt has that is taken."""
        return longest_prompt(self.cap)


def longest_prompt(cap: int) -> int:
    """Return how many tokens the longest prompt under a cap has: SGLang takes what is shorter than `cap - 1 - 5`."""
    return cap - 7


@dataclass(frozen=True)
class Run:
    """One check's way to one pair."""

    client: Asker
    subject: Subject
    passes: Iterator[str]
    chance: random.Random
    """A `random.SystemRandom()` wherever users can reach the engine; see `markers`."""

    async def ask(self, prompt: str | tuple[int, ...], max_tokens: int, seconds: float | None = None) -> PairAnswer:
        """Ask both legs.

        Raises:
            ValueError: when the passes have run out: there were fewer than `passes_needed`.
        """
        return await self.client.ask(self.subject.pair, self._question(prompt, max_tokens), self.draw_room(), seconds)

    async def ask_named(self, prompt: str, max_tokens: int, room: int, rids: Mapping[str, str]) -> PairAnswer:
        """Ask both legs in a room that is known, with ids by leg.

        Raises:
            ValueError: as `ask` does.
        """
        return await self.client.ask(self.subject.pair, self._question(prompt, max_tokens, rids), room)

    async def ask_leg(self, prompt: str, max_tokens: int, leg: str, rids: Mapping[str, str]) -> Answer:
        """Ask both legs, with ids by leg, and wait for one of them.

        Raises:
            ValueError: as `ask` does.
        """
        question = self._question(prompt, max_tokens, rids)
        return await self.client.ask_leg(self.subject.pair, question, self.draw_room(), leg)

    def draw_room(self) -> int:
        """Return a room that nobody else has."""
        return self.chance.randrange(ROOMS)

    def _question(
        self, prompt: str | tuple[int, ...], max_tokens: int, rids: Mapping[str, str] | None = None
    ) -> Question:
        shown = next(self.passes, None)
        if shown is None:
            raise ValueError("there are fewer passes than questions")
        return Question(self.subject.model, prompt, max_tokens, pass_=shown, rids=rids or {})


def legs(answer: PairAnswer) -> tuple[tuple[str, Answer], tuple[str, Answer]]:
    """Return both answers with the names of their legs."""
    return ("prefill", answer.prefill), ("decode", answer.decode)
