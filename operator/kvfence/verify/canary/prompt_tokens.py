"""PromptTokens: the count of a prompt's tokens is what was sent, at each length and on each leg.

A prompt that was cut on its way, or of which a stub was handed over, counts less on the leg that has less. Lengths are
those around the borders of pages, where rounding shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.domain.verdicts import Check, Outcome
from kvfence.verify import judging, markers, overlong
from kvfence.verify.canary import edges, measuring, people
from kvfence.verify.canary.measuring import Measure
from kvfence.verify.canary.result import Result, failed, not_judged, passed
from kvfence.verify.judging import Finding, contradiction, unanswered, worst, wrong_count

if TYPE_CHECKING:
    from kvfence.verify.canary.people import Asked
    from kvfence.verify.canary.session import Session

NAME = Check.PROMPT_TOKENS
HOSTILE = False

LONGEST = 2_048
"""Tokens; longer prompts are `OverlongPrompt`'s."""

_ANSWER_TOKENS = 1
_LENGTHS = (1, 2, 3, 7, 8, 9, 31, 32, 33, 100, 255, 256, 257, 511, 512, 513, 1000, 1500, 2047, 2048)
_UNTOLD = 500
"""Tokens that any server takes which does not tell what it takes."""

_GROWING = (20, 21, 22)
"""Digits of texts of which each must count more than the one before."""

_WORTH_A_STUB = 32
"""Tokens from which half of them missing is no rounding."""

_STUB = "; so few that only a stub of it can have been there"
_CURE = (
    "See what is between you and the engines, and whether one of them has --allow-auto-truncate or an older version."
)


def lengths(session: Session) -> tuple[int, ...]:
    """Return lengths in tokens to ask with, the shortest first."""
    limits, page = edges.limits(session.target), edges.smallest_page(session.target)
    most = min(LONGEST, limits[0] - overlong.ANSWER_TOKENS) if limits else _UNTOLD
    borders = [page * pages + off for pages in (1, 2, 5) for off in (-1, 0, 1)]
    return tuple(sorted({one for one in (*_LENGTHS, *borders, most) if 1 <= one <= most}))


async def check(session: Session) -> Result:
    """Ask with prompts of many lengths, and stop at the first that is wrong.

    Raises:
        BudgetSpentError: when it would cost more than is left.
    """
    if session.target.takes_token_ids:
        return await _with_ids(session)
    return await _with_texts(session)


async def _with_ids(session: Session) -> Result:
    wanted = lengths(session)
    for number, length in enumerate(wanted, 1):
        prompt = session.ids(length)
        asked = await people.ask(session, f"A{number}", f"a prompt of {length} tokens", prompt, _ANSWER_TOKENS)
        if found := judge(asked, length):
            return _result(asked, length, found)
    return passed(f"{len(wanted)} prompts of {wanted[0]} to {wanted[-1]} tokens, all counted as they were sent.")


async def _with_texts(session: Session) -> Result:
    """Without ids, what a text must count is told by shorter ones; a text with one digit more counts more."""
    counted = 0
    for number, digits in enumerate(_GROWING, 1):
        text = measuring.numbers(digits, session.chance) + markers.LEAD
        asked = await people.ask(session, f"A{number}", f"a text of {digits} digits", text, _ANSWER_TOKENS)
        if found := unanswered(asked.answers) or _told(asked):
            return _result(asked, None, found)
        if (count := asked.last.prompt_tokens or 0) <= max(counted, digits):
            words = f"A text of {digits} digits counted {count} tokens, and one digit less {counted}. {_CURE}"
            return failed(words, people.statuses(asked))
        counted = count
    measured = await measuring.measure(session)
    if not isinstance(measured, Measure):
        return not_judged(f"How it counts a text cannot be told: {measured}.")
    wanted = sorted({length for one in lengths(session) if (length := measured.at_most(one)) is not None})
    for number, length in enumerate(wanted, len(_GROWING) + 1):
        prompt = measured.text(length, session.chance)
        asked = await people.ask(session, f"A{number}", f"a text of {length} tokens", prompt, _ANSWER_TOKENS)
        if found := judge(asked, length):
            return _result(asked, length, found)
    return passed(f"{len(wanted)} texts of {wanted[0]} to {wanted[-1]} tokens, all counted as shorter ones foretold.")


def judge(asked: Asked, length: int) -> Finding | None:
    """Return what is wrong with the counts of a prompt of so many tokens."""
    answers = asked.answers
    counts = [wrong_count(leg, said, length) for leg, said in answers]
    return worst([contradiction(answers), *counts, unanswered(answers), _told(asked)])


def _told(asked: Asked) -> Finding | None:
    silent = [leg for leg, heard in asked.legs if heard.prompt_tokens is None]
    return judging.not_judged(f"{silent[0]} does not tell how many tokens a prompt has") if silent else None


def _result(asked: Asked, length: int | None, found: Finding) -> Result:
    counts = [heard.prompt_tokens for _, heard in asked.legs if heard.prompt_tokens is not None]
    is_stub = length is not None and length >= _WORTH_A_STUB and any(count * 2 < length for count in counts)
    words = f"{found.words[0].upper()}{found.words[1:]} ({asked.what}{_STUB if is_stub else ''})."
    if found.outcome is Outcome.FAILED:
        return failed(f"{words} {_CURE}", people.statuses(asked))
    return not_judged(words, people.statuses(asked))
