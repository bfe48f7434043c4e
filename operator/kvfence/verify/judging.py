"""What answers of one or two legs say about isolation: the same judgement for admission and for the command line.

Nothing here quotes a prompt or an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kvfence.domain.asking import Fault
from kvfence.domain.verdicts import Outcome
from kvfence.verify import markers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from kvfence.domain.asking import Answer

    Legs = Sequence[tuple[str, Answer]]
    """What each leg answered, with its name; of a pair prefill first."""

REFUSALS = frozenset({400, 413, 422})
"""Statuses that say that the request is at fault. 403 is none: it speaks of the rights of whoever asks, and a firewall
that has had enough of us says it to anything. Where a field may be forbidden to clients, an ordinary question asked
again tells whether it was the request."""

FORBIDDEN = 403

UNAVAILABLE = frozenset({401, 404, 429, 503})
"""Statuses that say nothing about the request: no key, no such model or path, too much load, nobody there. 503 is also
what a door says that is shut or does not know the pass."""


MUTE = "did not repeat a text that stands in its own prompt, so that it would not repeat another's either"
"""What is said of a model whose answers can show no leak."""


class Came(Protocol):
    """What came of a request: an `Answer`, a `Heard` or a `Reply`."""

    @property
    def status(self) -> int | None:
        """HTTP status; none when no head of an answer came."""
        ...

    @property
    def fault(self) -> Fault | None:
        """Why there is no usable answer."""
        ...

    @property
    def seconds(self) -> float:
        """Until it was there, or was given up."""
        ...


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


def is_success(came: Came) -> bool:
    """Whether the server took the request, whatever it then said."""
    return came.status is not None and 200 <= came.status < 300


def told(said: Answer, foreign: Collection[str]) -> tuple[str, ...]:
    """Return those markers that came out of an answer: in its text, in the words of an error, or in whatever came."""
    places = (said.text, said.detail, said.raw)
    return tuple(dict.fromkeys(marker for place in places for marker in markers.found(place, foreign)))


def crossed(answers: Legs, foreign: Collection[str]) -> Finding | None:
    """Fail when a marker that was not in this prompt stands in an answer to it, be it in the words of an error."""
    for leg, said in answers:
        if told(said, foreign):
            return failed(f"{leg} answered with the marker of another request")
    return None


def contradiction(answers: Legs) -> Finding | None:
    """Fail when the legs of a pair did not work on the same prompt, and decode answered all the same."""
    if len(answers) < 2:
        return None
    (_, prefill), (_, decode) = answers
    if is_success(decode) and prefill.status is not None and not is_success(prefill):
        return failed(f"decode answered {decode.status} to a prompt that prefill refused with {prefill.status}")
    counts = prefill.prompt_tokens, decode.prompt_tokens
    if None not in counts and counts[0] != counts[1]:
        return failed(f"prefill counted {counts[0]} tokens of a prompt, and decode {counts[1]}")
    return None


def unanswered(answers: Legs) -> Finding | None:
    """Say what came instead of a completion."""
    for leg, said in answers:
        if said.fault is not None:
            return not_judged(f"{leg} {what_came(said)}")
    return None


def wrong_count(leg: str, answer: Answer, length: int) -> Finding | None:
    """Fail when a leg counted another number of tokens than the prompt has."""
    if answer.prompt_tokens is None or answer.prompt_tokens == length:
        return None
    return failed(f"{leg} counted {answer.prompt_tokens} tokens")


def not_refused(answers: Legs, seconds: float) -> Finding | None:
    """Return what is wrong with a refusal that each leg owed within so many seconds."""
    found = [one for leg, said in answers if (one := refusal(leg, said, seconds)) is not None]
    first = worst(found)
    if first is None:
        return None
    return Finding(first.outcome, ", and ".join(one.words for one in found if one.outcome is first.outcome))


def refusal(who: str, came: Came, seconds: float) -> Finding | None:
    """Return what is wrong with a refusal that was owed within so many seconds."""
    status = came.status
    if is_success(came):
        return failed(f"{who} answered {status} where it had to refuse")
    if came.fault is Fault.TIMED_OUT or came.seconds > seconds:
        return failed(f"{who} did not refuse within {seconds:.0f} s")
    if status is None or status in UNAVAILABLE:
        return not_judged(f"{who} {what_came(came)}")
    if status >= 500:
        return failed(f"{who} answered {status} where it had to refuse with a 4xx")
    return None if status in REFUSALS else not_judged(f"{who} answered {status}, which says nothing about the length")


def what_came(came: Came) -> str:
    """Return in words what came instead of a completion. Quotes nothing of it."""
    match came.fault:
        case Fault.STATUS | None:
            return f"answered {came.status}"
        case Fault.TIMED_OUT:
            return "had not answered in time"
        case Fault.UNREACHABLE:
            return "could not be reached, or broke the connection"
        case Fault.TOO_LARGE:
            return "gave an answer that is too large to be one"
        case _:
            return "gave an answer that is no completion"
