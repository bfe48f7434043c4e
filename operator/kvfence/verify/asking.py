"""How a check asks a pair: with a room and a single-use pass of its own for each question, shown to both legs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kvfence.domain.asking import ROOMS, Answer, Fault, Pair, PairAnswer, Question
from kvfence.domain.verdicts import Outcome
from kvfence.verify import markers

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Iterable, Iterator


class Asker(Protocol):
    """Asks both legs at once, as `kvfence.engine.pair.Client` does; raises only when it is cancelled."""

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
        shown = next(self.passes, None)
        if shown is None:
            raise ValueError("there are fewer passes than questions")
        question = Question(self.subject.model, prompt, max_tokens, pass_=shown)
        return await self.client.ask(self.subject.pair, question, self.chance.randrange(ROOMS), seconds)


@dataclass(frozen=True)
class Finding:
    """What one answer says, unless all is well."""

    outcome: Outcome
    """Failed or NotJudged."""
    words: str
    """What was seen, without anything of a prompt or an answer."""


def worst(findings: Iterable[Finding | None]) -> Finding | None:
    """Return the first that failed, else the first that could not be judged; none when all is well."""
    found = [one for one in findings if one is not None]
    failed = [one for one in found if one.outcome is Outcome.FAILED]
    return next(iter([*failed, *found]), None)


def failed(words: str) -> Finding:
    """Return a finding of what must not be."""
    return Finding(Outcome.FAILED, words)


def not_judged(words: str) -> Finding:
    """Return a finding of what hides the answer to the question."""
    return Finding(Outcome.NOT_JUDGED, words)


def legs(answer: PairAnswer) -> tuple[tuple[str, Answer], tuple[str, Answer]]:
    """Return both answers with the names of their legs."""
    return ("prefill", answer.prefill), ("decode", answer.decode)


def is_success(answer: Answer) -> bool:
    """Whether the server took the request, whatever it then said."""
    return answer.status is not None and 200 <= answer.status < 300


def crossed(answer: PairAnswer, foreign: Collection[str]) -> Finding | None:
    """Fail when a marker that was not in this prompt stands in an answer to it, be it in the words of an error."""
    for leg, said in legs(answer):
        if markers.found(said.text, foreign) or markers.found(said.detail, foreign):
            return failed(f"{leg} answered with the marker of another request")
    return None


def contradiction(answer: PairAnswer) -> Finding | None:
    """Fail when the legs did not work on the same prompt, and decode answered all the same."""
    prefill, decode = answer.prefill, answer.decode
    if is_success(decode) and prefill.status is not None and not is_success(prefill):
        return failed(f"decode answered {decode.status} to a prompt that prefill refused with {prefill.status}")
    counts = prefill.prompt_tokens, decode.prompt_tokens
    if None not in counts and counts[0] != counts[1]:
        return failed(f"prefill counted {counts[0]} tokens of a prompt, and decode {counts[1]}")
    return None


def unanswered(answer: PairAnswer) -> Finding | None:
    """Say what came instead of a completion."""
    for leg, said in legs(answer):
        if said.fault is not None:
            return not_judged(f"{leg} {what_came(said)}")
    return None


def what_came(answer: Answer) -> str:
    """Return in words what came instead of a completion. Quotes nothing of it."""
    match answer.fault:
        case Fault.STATUS:
            return f"answered {answer.status}"
        case Fault.TIMED_OUT:
            return "had not answered in time"
        case Fault.UNREACHABLE:
            return "could not be reached, or broke the connection"
        case Fault.TOO_LARGE:
            return "gave an answer that is too large to be one"
        case _:
            return "gave an answer that is no completion"
