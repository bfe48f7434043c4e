"""Who asked what and what came of it: each question belongs to a made-up user, so that a failure says whose words came
out of whose answer.

Users are A1, A2, B1: those with the same letter ask at the same time, or for the same reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvfence.domain.asking import Answer, Fault, Heard
from kvfence.verify import judging, markers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kvfence.verify.canary.session import Prompt, Session, Target
    from kvfence.verify.judging import Legs


@dataclass(frozen=True)
class Asked:
    """One question of a user, and what came of it."""

    user: str
    what: str
    """The question, in words that show nothing of it: `a text of 900 characters`."""
    room: int | None
    """Of a pair."""
    legs: tuple[tuple[str, Heard], ...]

    @property
    def answers(self) -> Legs:
        """What is judged."""
        return tuple((leg, as_answer(heard)) for leg, heard in self.legs)

    @property
    def last(self) -> Heard:
        """What the user would see: decode's answer of a pair."""
        return self.legs[-1][1]

    @property
    def words(self) -> str:
        """Who asked what, and where."""
        room = "" if self.room is None else f", room {self.room}"
        return f"user {self.user} ({self.what}{room})"


def as_answer(heard: Heard) -> Answer:
    """Return what is judged of one leg's answer. An error within a stream counts as the words of an error."""
    return Answer(heard.status, heard.text, heard.prompt_tokens, heard.seconds, heard.fault, heard.error, raw=heard.raw)


async def ask(session: Session, user: str, what: str, prompt: Prompt, max_tokens: int, /, **more: Any) -> Asked:
    """Ask every leg for a user; `more` is as for `Session.ask`.

    Raises:
        BudgetSpentError: when it would cost more than is left.
    """
    rendezvous = session.rendezvous()
    heard = await session.ask(prompt, max_tokens, **{**rendezvous, **more})
    names = [leg.name for leg in session.target.legs]
    return Asked(user, what, rendezvous.get("bootstrap_room"), tuple(zip(names, heard, strict=True)))


def whose(asked: Asked, planted: Mapping[str, str]) -> tuple[str, ...]:
    """Return one line for each marker of another user that came out of an answer.

    Args:
        asked: a question and its answers.
        planted: the user of each marker.
    """
    foreign = {marker: f"user {user}" for marker, user in planted.items() if user != asked.user}
    return leaks(asked.words, asked.legs, foreign)


def leaks(asked: str, legs: Iterable[tuple[str, Heard]], others: Mapping[str, str]) -> tuple[str, ...]:
    """Return one line for each marker of another request that came out of an answer.

    Args:
        asked: what the request was, such as `question 3`.
        legs: what each leg answered, with its name.
        others: markers that were not in this request, with what the request was that had them.
    """
    return tuple(
        f"{marker} of {others[marker]} came out of what {leg} answered ({heard.status or 'no status'}) to {asked}"
        for leg, heard in legs
        for marker in judging.told(as_answer(heard), others)
    )


def named(target: Target, heard: tuple[Heard, ...]) -> tuple[tuple[str, Heard], ...]:
    """Return each answer with the name of its leg."""
    return tuple((leg.name, one) for leg, one in zip(target.legs, heard, strict=True))


def is_answer(heard: Heard) -> bool:
    """Whether this is a completion with status 200, without an error in it."""
    return heard.status == 200 and heard.fault is None and not heard.error and heard.finish_reason != "abort"


def is_refusal(heard: Heard) -> bool:
    """Whether the server said that this request is at fault."""
    return heard.fault is Fault.STATUS and heard.status in judging.REFUSALS


def repeats(heard: Heard, marker: str) -> bool:
    """Whether an answer has the marker of its own request."""
    return bool(markers.found(heard.text, (marker,)))


def status(heard: Heard) -> str:
    """Return the status in words."""
    return "no status" if heard.status is None else f"status {heard.status}"


def what_came(heard: Heard) -> str:
    """Return in words what a server did instead of answering, to go behind its name. Quotes nothing of it."""
    if heard.hung_up:
        return "was left by us before it had answered"
    if heard.error and heard.status == 200 and heard.fault is None:
        return "answered 200 with an error in it"
    return "aborted the request" if heard.finish_reason == "abort" else judging.what_came(heard)


def unanswered(target: Target, heard: tuple[Heard, ...]) -> str:
    """Return in words which legs gave no completion; empty when all did."""
    return " and ".join(f"{name} {what_came(one)}" for name, one in named(target, heard) if not is_answer(one))


def told(leaked: tuple[str, ...]) -> str:
    """Return in a sentence what `whose` found, the first of it in full."""
    return f"{leaked[0]}{f', and {len(leaked) - 1} more like it' if len(leaked) > 1 else ''}."


def statuses(asked: Asked) -> str:
    """Return in one line what each leg answered, without any of its text."""
    said = "; ".join(f"{leg}: {_came(heard)}" for leg, heard in asked.legs)
    return f"{asked.words}: {said}"


def _came(heard: Heard) -> str:
    count = "" if heard.prompt_tokens is None else f", {heard.prompt_tokens} tokens of prompt counted"
    fault = "" if heard.fault is None or heard.status not in (None, 200) else f", {heard.fault}"
    return f"{status(heard)}{count}{fault} after {heard.seconds:.1f} s"
