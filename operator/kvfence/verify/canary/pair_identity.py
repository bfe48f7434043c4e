"""PairIdentity: a pair answers as a server with the same weights does that computes prompt and answer itself.

Whatever is lost, shifted or mixed up between prefill and decode changes the answer, be it one page at the end of a long
prompt. So the same prompts go to both, greedily, and the answers must be equal: prompts around the border of a page,
longer ones, and the longest that fit.

Two engines may round differently, and where two tokens are almost equally likely an answer then goes another way. So
what comes next stands in the prompt already: a marker, between numbers that no other prompt has, and a lead at the end
after which it is to be repeated. It stands just before the end, in the middle or at the beginning: prefill gives the
first token of the answer, and the rest shows whether decode has the KV of that place. And the reference is asked twice:
what follows the place where it differs from itself is not compared. That is the tolerance; a reference that differs
from itself at once, whatever it is asked, leaves nothing to compare with.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kvfence.domain.verdicts import Check
from kvfence.verify import markers
from kvfence.verify.canary.edges import everyone
from kvfence.verify.canary.measuring import measure, numbers
from kvfence.verify.canary.people import is_answer, named, unanswered, what_came
from kvfence.verify.canary.result import Result, failed, not_judged, passed

if TYPE_CHECKING:
    from kvfence.domain.asking import Heard
    from kvfence.verify.canary.measuring import Measure
    from kvfence.verify.canary.session import Known, Session, Target

NAME = Check.PAIR_IDENTITY
HOSTILE = False

PAGE = 64
"""Tokens, where it is not known."""
PAGES = (4, 16)
"""Of the prompts around the border of a page, and of the longer ones."""

AT_THE_LIMIT = 4
"""Tokens of the answer to the longest prompt: prompt and answer have max_req_input_len + 5 together at most."""
LONG, SHORT = 32, 8
"""Characters of a marker: of more than one page of small ones; or of so few that four tokens say half of it."""
ANSWER_TOKENS = LONG + 4

SOME = 4
"""Numbers on each side of a marker at least, by which its tokens are counted."""

NO_ROOM = "There is room for no prompt in which a marker could be repeated."
_CURE = (
    "Decode does not work on what prefill computed, or the two servers are not the same: compare model, revision, data "
    "type, tokenizer, page size and SGLang's version on all of them, then the transfer backend; see the logs."
)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A prompt to be made."""

    tokens: int
    """It has that many, or one less where a number is two tokens."""
    before: float
    """Part of its numbers that stand before the marker; 1 for a marker at its end."""
    marker: int = LONG
    """Characters."""
    max_tokens: int = ANSWER_TOKENS


@dataclass(frozen=True, slots=True)
class _Question:
    prompt: str
    max_tokens: int

    @property
    def what(self) -> str:
        """In words: how long it is."""
        return f"a prompt of {len(self.prompt)} characters"


@dataclass
class _Seen:
    compared: int = 0
    loose: list[str] = field(default_factory=list)
    """Prompts, in words, to which the reference gave no answer that could be compared."""


async def check(session: Session) -> Result:
    """Ask target and reference the same, and compare.

    Raises:
        BudgetSpentError: when it would cost more than is left.
    """
    reference = session.target.reference
    if reference is None:
        return not_judged(
            "There is no reference: name a server of the same weights without prefill and decode apart (--reference)."
        )
    measured = await measure(session)
    if isinstance(measured, str):
        return not_judged(f"How texts are counted could not be measured: {measured}.")
    seen = _Seen()
    for wanted in _wanted(session.target, reference):
        question = await _make(session, reference, measured, wanted)
        if isinstance(question, Result):
            return question
        if question is not None and (found := await _compare(session, reference, question, seen)):
            return found
    if not seen.compared:
        reason = "The reference does not answer the same prompt twice in the same way." if seen.loose else NO_ROOM
        return not_judged(reason, *seen.loose)
    rest = (
        f", and {len(seen.loose)} that the reference answered in two ways could not be compared" if seen.loose else ""
    )
    return passed(f"{seen.compared} answers were the same as the reference's{rest}.")


def _wanted(target: Target, reference: Known) -> list[_Wanted]:
    """Return the prompts to ask, the shortest first."""
    sizes = [one.page_size for one in everyone(target) if one.page_size is not None]
    page = max(2, *sizes) if sizes else PAGE
    few, many = (pages * page for pages in PAGES)
    wanted = [_Wanted(few + off, 1) for off in (-1, 0, 1)] + [_Wanted(many, before) for before in (1, 0.5, 0)]
    longest = _longest(target, reference)
    if longest is None:
        return wanted
    wanted = [one for one in wanted if one.tokens + one.max_tokens <= longest]
    return [*wanted, *(_Wanted(longest, before, SHORT, AT_THE_LIMIT) for before in (1, 0))]


async def _make(session: Session, reference: Known, measured: Measure, wanted: _Wanted) -> _Question | Result | None:
    """Return a prompt of the length that is wanted; none when its marker alone is longer.

    What the marker and the leads are in tokens is asked of the reference, with a few numbers around them.
    """
    (marker,) = markers.draw(1, session.chance, wanted.marker)

    def text(before: int, behind: int) -> str:
        between = f" {numbers(behind, session.chance)}" if behind else ""
        return numbers(before, session.chance) + markers.LEAD + marker + between + markers.LEAD

    behind = 0 if wanted.before == 1 else SOME
    heard = await session.ask_only(reference, text(SOME, behind), 1)
    if not is_answer(heard) or heard.prompt_tokens is None:
        return not_judged(
            f"A short prompt was not answered with a count of its tokens: the reference {what_came(heard)}."
        )
    left = (wanted.tokens - heard.prompt_tokens) // measured.each
    if left < 0:
        return None
    ahead = round(left * wanted.before)
    return _Question(text(SOME + ahead, behind + left - ahead), wanted.max_tokens)


async def _compare(session: Session, reference: Known, question: _Question, seen: _Seen) -> Result | None:
    """Ask both; return what is wrong. The reference is asked again where they differ: it has to insist."""
    told = [await _ask_reference(session, reference, question) for _ in range(2)]
    heard = await session.ask(question.prompt, question.max_tokens)
    if found := _unfit(session.target, question, told, heard):
        return found
    at = _differs(heard[-1].text, [one.text for one in told])
    if at is not None:
        told.append(await _ask_reference(session, reference, question))
        at = _differs(heard[-1].text, [one.text for one in told])
    if at is not None:
        return await _different(session, question, heard[-1], at)
    if _agreed([one.text for one in told]) == 0:
        seen.loose.append(question.what)
    else:
        seen.compared += 1
    return None


def _unfit(target: Target, question: _Question, told: list[Heard], heard: tuple[Heard, ...]) -> Result | None:
    """Return what is wrong with the answers beside their texts: one is missing, or counts another prompt."""
    missing = [unanswered(target, heard), *(f"the reference {what_came(one)}" for one in told if not is_answer(one))]
    for words in filter(None, missing):
        return not_judged(f"A prompt of {len(question.prompt)} characters was not answered: {words}.")
    for name, one in named(target, heard):
        if None not in (one.prompt_tokens, told[0].prompt_tokens) and one.prompt_tokens != told[0].prompt_tokens:
            return failed(
                f"Of {question.what} {name} counted {one.prompt_tokens} tokens, and the reference "
                f"{told[0].prompt_tokens}. {_CURE}"
            )
    return None


def _differs(text: str, told: list[str]) -> int | None:
    """Return from which character on an answer differs from what the reference told each time; none if it does not."""
    at, agreed = _same(text, told[0]), _agreed(told)
    if agreed is None:
        return None if text == told[0] else at
    return at if at < agreed else None


def _agreed(told: list[str]) -> int | None:
    """Return how many characters all answers of the reference have in common; none when they are the same."""
    if all(one == told[0] for one in told):
        return None
    return min(_same(told[0], one) for one in told[1:])


async def _different(session: Session, question: _Question, heard: Heard, at: int) -> Result:
    """Say where an answer differs, and whether it does so again."""
    again = (await session.ask(question.prompt, question.max_tokens))[-1]
    same = "the same again when it is asked once more" if again.text == heard.text else "another when asked once more"
    return failed(
        f"The answer to {question.what} ({heard.prompt_tokens} tokens) differs from the reference's, which gives its "
        f"own each time, from character {at + 1} on; it has {len(heard.text)} and is {same}. {_CURE}"
    )


async def _ask_reference(session: Session, reference: Known, question: _Question) -> Heard:
    return await session.ask_only(reference, question.prompt, question.max_tokens)


def _same(one: str, other: str) -> int:
    """Return how many characters two texts have in common from their beginning."""
    same = itertools.takewhile(lambda two: two[0] == two[1], zip(one, other, strict=False))
    return sum(1 for _ in same)


def _longest(target: Target, reference: Known) -> int | None:
    """Return how many tokens the longest prompt has that all take; none when nothing is known."""
    limits = [
        limit - less
        for leg in (*everyone(target), reference)
        for limit, less in ((leg.max_input_tokens, 1), (leg.context_length, 7), (leg.kv_pool_tokens, 7))
        if limit is not None
    ]
    return min(limits, default=None)
