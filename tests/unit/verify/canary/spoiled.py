"""A stand-in whose answers a test changes on their way, and a check run on it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from kvfence.domain.asking import Call, Fault, Heard, Reply
from kvfence.verify.canary.result import Result
from kvfence.verify.canary.run import CanaryCheck
from kvfence.verify.canary.session import Budget, Session, Target
from kvfence.verify.canary.stand_in import Flaw, Shape, StandIn

Spoil = Callable[[Call, Heard], Heard]


def as_it_is(_call: Call, heard: Heard) -> Heard:
    return heard


@dataclass
class Spoiled:
    """A `Caller` that hands on what a stand-in answers, changed by a test."""

    shape: Shape
    flaws: tuple[Flaw, ...] = ()
    spoil: Spoil = as_it_is
    replied: Callable[[str, Reply], Reply] = lambda _url, reply: reply
    calls: list[Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.inner = StandIn(self.shape, frozenset(self.flaws))
        self.target: Target = self.inner.target

    async def send(self, call: Call, seconds: float) -> Heard:
        self.calls.append(call)
        return self.spoil(call, await self.inner.send(call, seconds))

    async def read(self, url: str, seconds: float) -> Reply:
        return self.replied(url, await self.inner.read(url, seconds))


def judged(check: Any, caller: Spoiled, *, requests: int = 10_000, seed: int = 7, **changes: Any) -> Result:
    """Return what a check says of a stand-in.

    Args:
        check: its module.
        caller: the stand-in.
        requests: of the budget.
        seed: of chance.
        changes: of the target.
    """
    module: CanaryCheck = check
    target = replace(caller.target, **changes)
    session = Session(caller, target, Budget(requests, 10**9, 0), random.Random(seed))
    return asyncio.run(module.check(session))


def said(result: Result) -> str:
    """Return message and evidence as one text."""
    return "\n".join((result.message, *result.evidence))


def status(code: int, error: str = "no") -> Heard:
    return Heard(code, error=error, fault=Fault.STATUS, seconds=0.01)


TIMED_OUT = Heard(None, fault=Fault.TIMED_OUT, seconds=60.0)
UNREACHABLE = Heard(None, fault=Fault.UNREACHABLE, seconds=0.01)
MALFORMED = Heard(200, fault=Fault.MALFORMED, seconds=0.01)
TOO_LARGE = Heard(200, fault=Fault.TOO_LARGE, seconds=0.01)
NO_ANSWERS = {
    "had not answered in time": TIMED_OUT,
    "could not be reached, or broke the connection": UNREACHABLE,
    "gave an answer that is no completion": MALFORMED,
    "gave an answer that is too large to be one": TOO_LARGE,
    "answered 503": status(503),
    "answered 401": status(401),
    "answered 429": status(429),
}
"""What hides the answer to any question, by the words for it."""


def with_field(name: str, change: Callable[[Heard], Heard]) -> Spoil:
    """Change the answers to requests whose body has this field."""
    return lambda call, heard: change(heard) if call.body.get(name) is not None else heard


def without_field(name: str, change: Callable[[Heard], Heard]) -> Spoil:
    return lambda call, heard: heard if call.body.get(name) is not None else change(heard)
