"""Ordinary users in numbers: prompts of all kinds at once, each with a marker of its own, and what became of them.

Half of what is asked is there to make an engine's bookkeeping work: prompts that begin alike, so that prefill finds
pages in its cache; answers so long that decode takes page after page; clients that leave.
Some users are hostile: they ask decode alone, in the name of a transfer that never happens, for what its pages hold.
Which kinds there are, and how long the answers, says a `Mix`.
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
from kvfence.verify import markers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

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


_REFUSED = (Kind.TOO_LONG, Kind.HOSTILE)


@dataclass(frozen=True)
class Mix:
    """How often which kind of user is drawn, and what their numbers are."""

    shares: Mapping[Kind, int]
    goes_on: int = 80
    """Letters of a long answer ahead of its marker."""
    leaves_within: float = 0.5
    """Seconds: the latest at which those leave who do not wait for the answer."""


ORDINARY_AND_HOSTILE = Mix(
    {Kind.PLAIN: 3, Kind.ALIKE: 3, Kind.LONG_ANSWER: 2, Kind.LEAVES: 1, Kind.TOO_LONG: 1, Kind.HOSTILE: 2}
)


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

    @property
    def asked(self) -> int:
        """How many have their answer, or left."""
        return self.verdicts.total() + self.left

    def of(self, verdict: Verdict) -> int:
        """How many came to this, of whatever kind."""
        return sum(count for (_, found), count in self.verdicts.items() if found is verdict)


class Markers:
    """Those of all users so far, to look for in the answers to others. Which marker a run belongs to is looked up, so
    that an answer costs the same after many users.
    """

    def __init__(self) -> None:
        self._by_run: dict[str, str] = {}

    def add(self, marker: str) -> None:
        """Look for a marker from now on."""
        for run in _runs(marker):
            self._by_run[run] = marker

    def told(self, said: Answer, own: str) -> tuple[str, ...]:
        """Return those but one's own that came out of an answer, be it in the words of an error."""
        runs = (run for place in (said.text, said.detail, said.raw) for run in _runs(place))
        found = dict.fromkeys(self._by_run[run] for run in runs if run in self._by_run)
        return tuple(marker for marker in found if marker != own)


def _runs(text: str) -> list[str]:
    return [text[i : i + markers.RUN] for i in range(len(text) - markers.RUN + 1)]


def drawn(count: int, seed: int, mix: Mix = ORDINARY_AND_HOSTILE) -> Iterator[User]:
    """Yield users by a seed, one for each that is taken; no two have the same marker."""
    chance = random.Random(seed)  # noqa: S311 - not a secret
    alike = [f"{chance.randrange(10**6):06} {markers.filler(_ALIKE_TOKENS - 8)}" for _ in range(_BEGINNINGS)]
    kinds = chance.choices(list(mix.shares), list(mix.shares.values()), k=count)
    for kind, marker in zip(kinds, markers.draw(count, chance, prompts.LENGTH), strict=True):
        yield _user(kind, marker, chance, chance.choice(alike), mix)


async def ask_all(users: Iterable[User], pair: Pair, seen: Seen, at_once: int = AT_ONCE) -> None:
    """Ask for all users, so many at a time, and say what became of each in `seen`.

    Through both legs, as a router does; for hostile ones decode alone.
    """
    every, waiting = Markers(), iter(users)
    async with Client(TIMEOUT_SECONDS) as client:

        async def ask() -> None:
            for user in waiting:
                every.add(user.marker)
                try:
                    answers = await asyncio.wait_for(_ask(client, pair, user), user.leaves_after)
                except TimeoutError:
                    seen.left += 1
                    continue
                leaked = tuple(found for leg in answers for found in every.told(leg, user.marker))
                seen.add(user, Outcome(True, answers[0], answers[-1], user.prompt.expected, leaked))

        await asyncio.gather(*(ask() for _ in range(at_once)))


async def _ask(client: Client, pair: Pair, user: User) -> list[Answer]:
    """Return what the legs that are asked answer, decode last."""
    question = Asked(SERVED_NAME, user.prompt.text, user.answer_tokens, fields=user.fields)
    if user.kind is Kind.HOSTILE:
        return [await client.ask_one(pair.decode_url, question)]
    both = await client.ask(pair, question, random.randrange(ROOMS))  # noqa: S311 - not a secret
    return [both.prefill, both.decode]


def _user(kind: Kind, marker: str, chance: random.Random, alike: str, mix: Mix) -> User:
    pages = chance.randrange(2, 20)
    if kind is Kind.ALIKE:
        said = markers.planting_prompt(marker, pages * prompts.PAGE)
        key: dict[str, Any] = chance.choice(({}, {}, {"extra_key": "a"}, {"extra_key": "b"}, {"extra_key": ""}))
        return User(kind, marker, prompts.Prompt(alike + said, markers.LEAD + marker), _ANSWER_TOKENS, fields=key)
    if kind is Kind.LONG_ANSWER:
        prompt = prompts.going_on(marker, chance.randrange(20, 40) * prompts.PAGE, chance, mix.goes_on)
        return User(kind, marker, prompt, len(prompt.expected))
    if kind is Kind.TOO_LONG:
        return User(kind, marker, prompts.planting(marker, CAP // prompts.PAGE + pages, chance), _ANSWER_TOKENS)
    if kind is Kind.HOSTILE:
        prompt = prompts.asking(marker, 21 * prompts.PAGE, chance)
        where = {"bootstrap_host": FAKE_HOST, "bootstrap_port": 1, "bootstrap_room": chance.randrange(ROOMS)}
        return User(kind, marker, prompt, 2 * _ANSWER_TOKENS, fields={"rid": rid_for_a_dash(chance), **where})
    prompt = prompts.planting(marker, pages, chance)
    leaves = chance.uniform(0.02, mix.leaves_within) if kind is Kind.LEAVES else None
    return User(kind, marker, prompt, 200 if leaves else _ANSWER_TOKENS, leaves)
