"""MarkerIsolation: each answer repeats its own request's marker, and nobody else's.

In each round some users ask at the same time, each with a marker of its own and asked to repeat it; then some ask for
a marker without saying one. A marker of any user of any round that comes out of another's answer is a leak. Prompts
are measured in characters: no tokenizer makes more tokens of them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kvfence.domain.capacity import INPUT_MARGIN
from kvfence.domain.verdicts import Check, Outcome
from kvfence.verify import isolation, judging, markers
from kvfence.verify.canary import edges, people
from kvfence.verify.canary.result import Result, failed, not_judged, passed
from kvfence.verify.judging import Finding, contradiction, crossed, unanswered, worst

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.domain.asking import Answer
    from kvfence.verify.canary.people import Asked
    from kvfence.verify.canary.session import Session

NAME = Check.MARKER_ISOLATION
HOSTILE = False

ROUNDS = 6
"""Each with `isolation.AT_ONCE` users with markers, and `isolation.ASKING` without."""

UNTOLD = 1024
"""Tokens of a cap that any server has which tells none."""

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_CURE = (
    "Do not let more than one user ask here: see the versions and the logs of all engines, and `kvfence doctor` for "
    "what is known of them."
)


async def check(session: Session) -> Result:
    """Ask in rounds, and stop after the first in which something is wrong.

    Raises:
        BudgetSpentError: when it would cost more than is left.
    """
    told = edges.limits(session.target)
    cap = told[0] + INPUT_MARGIN if told else UNTOLD
    sizes = isolation.sizes_under(cap, edges.smallest_page(session.target))
    if not sizes:
        return not_judged(f"{cap} tokens leave no room for two requests with markers at the same time.")
    planted: dict[str, str] = {}
    for number in range(ROUNDS):
        asked = await _round(session, number, sizes, planted)
        if (found := worst(_judge(one, planted) for one in asked)) is not None:
            return _result(found, asked, planted)
    everyone = len(planted) + ROUNDS * isolation.ASKING
    return passed(f"{len(planted)} markers, each repeated in its own answer and in none of {everyone} others.")


async def _round(session: Session, number: int, sizes: tuple[int, ...], planted: dict[str, str]) -> list[Asked]:
    """Ask at the same time with new markers, which are added to those planted, then without."""
    letter = _LETTERS[number % len(_LETTERS)]
    drawn = markers.draw(len(sizes), session.chance)
    own = {marker: f"{letter}{i}" for i, marker in enumerate(drawn, 1)}
    planted |= own
    copying = (
        people.ask(
            session,
            user,
            f"a text of {size} characters that says its marker and asks for it",
            _prompt(marker, size, number),
            isolation.ANSWER_TOKENS,
        )
        for (marker, user), size in zip(own.items(), sizes, strict=True)
    )
    await session.budget.ready(len(sizes))
    asked = await asyncio.gather(*copying)
    room = min(sizes)
    asking = (
        people.ask(
            session,
            f"{letter}{len(sizes) + i}",
            f"a text of {room} characters that asks for a marker and says none",
            markers.asking_prompt(room + 1),
            isolation.ANSWER_TOKENS,
        )
        for i in range(1, isolation.ASKING + 1)
    )
    return [*asked, *await asyncio.gather(*asking)]


def _prompt(marker: str, size: int, number: int) -> str:
    """Return a prompt that ends with the lead: with the marker once, as far ahead as there is room, and in every other
    round over and over, which a model that is not trained to copy repeats more readily.
    """
    if number % 2 == 0:
        return markers.copying_prompt(marker, size, size - len(markers.LEAD))
    return markers.planting_prompt(marker, size - len(markers.LEAD)) + markers.LEAD


def _judge(asked: Asked, planted: Mapping[str, str]) -> Finding | None:
    foreign = [marker for marker, user in planted.items() if user != asked.user]
    own = [marker for marker, user in planted.items() if user == asked.user]
    answers = asked.answers
    wrong = crossed(answers, foreign) or contradiction(answers) or unanswered(answers)
    if wrong is not None or not own or _repeats(answers[-1][1], own):
        return wrong
    return judging.not_judged(f"the model {judging.MUTE}")


def _repeats(answer: Answer, own: list[str]) -> bool:
    return bool(markers.found(answer.text, own))


def _result(found: Finding, asked: list[Asked], planted: Mapping[str, str]) -> Result:
    leaked = tuple(line for one in asked for line in people.whose(one, planted))
    same = [one for one in asked if (said := _judge(one, planted)) is not None and said.outcome is found.outcome]
    evidence = (*leaked, *(people.statuses(one) for one in same))
    words = f"{found.words[0].upper()}{found.words[1:]}: {len(same)} of {len(asked)} answers."
    words = people.told(leaked) if leaked else words
    if found.outcome is Outcome.FAILED:
        return failed(f"{words} {_CURE}", *evidence)
    return not_judged(words, *evidence)
