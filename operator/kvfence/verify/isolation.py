"""MarkerIsolation: each answer repeats its own request's marker, and nobody else's.

Some requests run at the same time, each with a marker of its own and asked to repeat it. Then requests without a
marker ask for one, and must not get any.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kvfence.verify import markers
from kvfence.verify.asking import Limits, Run, legs
from kvfence.verify.judging import MUTE, Finding, contradiction, crossed, not_judged, unanswered, worst

if TYPE_CHECKING:
    from kvfence.domain.asking import PairAnswer

AT_ONCE = 4
"""Requests that run at the same time; two where there is no room for four."""

ASKING = 2
"""Requests without a marker, afterwards."""

ANSWER_TOKENS = markers.LENGTH + 4
"""A marker has at most as many tokens as characters; a few more, for a model that begins with a space."""

LARGEST = 2_000
"""Characters of a prompt. More would take time and show no more: what crosses does so by pages."""

SMALLEST = markers.LENGTH + 2 * len(markers.LEAD)
"""Characters of the shortest prompt that says a marker and asks for it."""

_ADDED = ANSWER_TOKENS + 1
"""Tokens beside the prompt's characters: the answer, and what the tokenizer puts in front."""


def sizes(limits: Limits) -> tuple[int, ...]:
    """Return the characters of the prompts with markers; see `sizes_under`."""
    return sizes_under(limits.cap, limits.page_size)


def sizes_under(cap: int, page_size: int) -> tuple[int, ...]:
    """Return the characters of the prompts with markers; none when a cap in tokens leaves no room for two.

    If each character is one token, they and their answers fit into half of the cap, all at once. They differ by parts
    of a page, so that their last pages are filled to different degrees.
    """
    for count in (AT_ONCE, 2):
        room = min(LARGEST, cap // 2 // count - _ADDED)
        if room >= SMALLEST:
            part = max(1, page_size // count)
            return tuple(max(SMALLEST, room - i * part) for i in range(count))
    return ()


def passes_needed(limits: Limits) -> int:
    """Return how many questions `prove` asks at most."""
    asked = len(sizes(limits))
    return asked + ASKING if asked else 0


async def prove(run: Run, limits: Limits, planted: tuple[str, ...]) -> Finding | None:
    """Ask, and return what is wrong.

    Args:
        run: the way to the pair.
        limits: of the pair.
        planted: markers to use, at least `AT_ONCE`.
    """
    characters = sizes(limits)
    if not characters:
        return not_judged(f"a cap of {limits.cap} tokens leaves no room for two requests with markers at the same time")
    used = planted[: len(characters)]
    prompts = [markers.copying(marker, size) for marker, size in zip(used, characters, strict=True)]
    answers = await asyncio.gather(*(run.ask(prompt, ANSWER_TOKENS) for prompt in prompts))
    found = worst(_judge(answer, own, planted) for answer, own in zip(answers, used, strict=True))
    if found is not None:
        return found
    asking = markers.asking_prompt(min(characters) + 1)
    asked = await asyncio.gather(*(run.ask(asking, ANSWER_TOKENS) for _ in range(ASKING)))
    said = [legs(answer) for answer in asked]
    return worst(crossed(one, planted) or contradiction(one) or unanswered(one) for one in said)


def _judge(answer: PairAnswer, own: str, planted: tuple[str, ...]) -> Finding | None:
    foreign = tuple(marker for marker in planted if marker != own)
    both = legs(answer)
    wrong = crossed(both, foreign) or contradiction(both) or unanswered(both)
    if wrong is not None or markers.found(answer.decode.text, (own,)):
        return wrong
    return not_judged(f"the model {MUTE}; see that its weights, data type and tokenizer are right")
