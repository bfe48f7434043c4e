"""Ordinary users in numbers: prompts of all kinds at once, each with a marker of its own, and what became of them.

Half of what is asked is there to make an engine's bookkeeping work: prompts that begin alike, so that prefill finds
pages in its cache; answers so long that decode takes page after page; clients that leave.
Some users are hostile: they ask decode alone, in the name of a transfer that never happens, for what its pages hold.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from e2e.engines.servers import SERVED_NAME
from e2e.integrity import prompts
from e2e.integrity.attacks import FAKE_HOST, rid_for_a_dash
from e2e.integrity.legs import Asked
from e2e.integrity.outcome import Outcome, Verdict
from kvfence.engine.pair import ROOMS, Client, Pair
from kvfence.verify import judging, markers

if TYPE_CHECKING:
    from e2e.integrity.prompts import Prompt
    from kvfence.domain.asking import Answer

AT_ONCE = 32
EXAMPLES = 5
TIMEOUT_SECONDS = 120.0
CAP = 1000
_BEGINNINGS = 4
"""How many different ones the prompts have that begin alike."""
_ALIKE_TOKENS = 12 * prompts.PAGE
_ANSWER_TOKENS = len(markers.LEAD) + prompts.LENGTH


class Kind(StrEnum):
    """What a user does."""

    PLAIN = "plain"
    ALIKE = "alike"
    """Begins as others do, and goes on alone."""
    LONG_ANSWER = "long answer"
    LEAVES = "leaves"
    """Before the answer is there."""
    TOO_LONG = "too long"
    HOSTILE = "hostile"


_SHARES = {Kind.PLAIN: 3, Kind.ALIKE: 3, Kind.LONG_ANSWER: 2, Kind.LEAVES: 1, Kind.TOO_LONG: 1, Kind.HOSTILE: 2}
_REFUSED = (Kind.TOO_LONG, Kind.HOSTILE)


@dataclass(frozen=True)
class User:
    """One request."""

    kind: Kind
    marker: str
    prompt: Prompt
    answer_tokens: int
    leaves_after: float | None = None
    """Seconds."""
    fields: dict[str, Any] = field(default_factory=dict)
    """More of the body: a key for the prefix cache, or what a hostile user names."""


@dataclass
class Seen:
    """What became of all of them."""

    verdicts: Counter[tuple[Kind, Verdict]] = field(default_factory=Counter)
    left: int = 0
    unwanted: int = 0
    """Those that got something else than they should have."""
    examples: list[str] = field(default_factory=list)
    """Of the first that should not be: what was answered."""

    def add(self, user: User, outcome: Outcome) -> None:
        """Take note of what became of one of them."""
        self.verdicts[user.kind, outcome.verdict] += 1
        wanted = Verdict.REFUSED if user.kind in _REFUSED else Verdict.RIGHT
        if outcome.verdict is not wanted:
            self.unwanted += 1
            if len(self.examples) < EXAMPLES:
                said = outcome.decode
                self.examples.append(f"{user.kind}: {outcome.verdict}: {said.status} {said.detail or said.text!r}")

    def of(self, verdict: Verdict) -> int:
        """How many came to this, of whatever kind."""
        return sum(count for (_, found), count in self.verdicts.items() if found is verdict)


def drawn(count: int, seed: int) -> list[User]:
    """Return users by a seed; no two have the same marker."""
    chance = random.Random(seed)  # noqa: S311 - not a secret
    alike = [f"{chance.randrange(10**6):06} {markers.filler(_ALIKE_TOKENS - 8)}" for _ in range(_BEGINNINGS)]
    kinds = chance.choices(list(_SHARES), list(_SHARES.values()), k=count)
    return [
        _user(kind, marker, chance, chance.choice(alike))
        for kind, marker in zip(kinds, markers.draw(count, chance, prompts.LENGTH), strict=True)
    ]


async def ask_all(users: list[User], pair: Pair, at_once: int = AT_ONCE) -> Seen:
    """Ask for all users, so many at a time: through both legs, as a router does; for hostile ones decode alone."""
    seen, turns = Seen(), asyncio.Semaphore(at_once)
    every = [user.marker for user in users]
    async with Client(TIMEOUT_SECONDS) as client:

        async def ask(user: User) -> None:
            async with turns:
                try:
                    answers = await asyncio.wait_for(_ask(client, pair, user), user.leaves_after)
                except TimeoutError:
                    seen.left += 1
                    return
            others = [marker for marker in every if marker != user.marker]
            leaked = tuple(found for leg in answers for found in judging.told(leg, others))
            seen.add(user, Outcome(True, answers[0], answers[-1], user.prompt.expected, leaked))

        await asyncio.gather(*(ask(user) for user in users))
    return seen


async def _ask(client: Client, pair: Pair, user: User) -> list[Answer]:
    """Return what the legs that are asked answer, decode last."""
    question = Asked(SERVED_NAME, user.prompt.text, user.answer_tokens, fields=user.fields)
    if user.kind is Kind.HOSTILE:
        return [await client.ask_one(pair.decode_url, question)]
    both = await client.ask(pair, question, random.randrange(ROOMS))  # noqa: S311 - not a secret
    return [both.prefill, both.decode]


def _user(kind: Kind, marker: str, chance: random.Random, alike: str) -> User:
    pages = chance.randrange(2, 20)
    if kind is Kind.ALIKE:
        said = markers.planting_prompt(marker, pages * prompts.PAGE)
        key: dict[str, Any] = chance.choice(({}, {}, {"extra_key": "a"}, {"extra_key": "b"}, {"extra_key": ""}))
        return User(kind, marker, prompts.Prompt(alike + said, markers.LEAD + marker), _ANSWER_TOKENS, fields=key)
    if kind is Kind.LONG_ANSWER:
        prompt = prompts.going_on(marker, chance.randrange(20, 40) * prompts.PAGE, chance)
        return User(kind, marker, prompt, len(prompt.expected))
    if kind is Kind.TOO_LONG:
        return User(kind, marker, prompts.planting(marker, CAP // prompts.PAGE + pages, chance), _ANSWER_TOKENS)
    if kind is Kind.HOSTILE:
        prompt = prompts.asking(marker, 21 * prompts.PAGE, chance)
        where = {"bootstrap_host": FAKE_HOST, "bootstrap_port": 1, "bootstrap_room": chance.randrange(ROOMS)}
        return User(kind, marker, prompt, 2 * _ANSWER_TOKENS, fields={"rid": rid_for_a_dash(chance), **where})
    prompt = prompts.planting(marker, pages, chance)
    leaves = chance.uniform(0.02, 0.5) if kind is Kind.LEAVES else None
    return User(kind, marker, prompt, 200 if leaves else _ANSWER_TOKENS, leaves)
