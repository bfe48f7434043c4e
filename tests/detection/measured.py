"""Runs checks many times on stand-ins that are broken at random, and counts how often they do not pass."""

from __future__ import annotations

import asyncio
import math
import random
from dataclasses import dataclass

from kvfence.domain.verdicts import Outcome
from kvfence.verify.canary.controls import CONTROLS
from kvfence.verify.canary.detection import Probing
from kvfence.verify.canary.probes import probing_of
from kvfence.verify.canary.result import Result
from kvfence.verify.canary.run import CanaryCheck
from kvfence.verify.canary.session import Budget, Session, Target
from kvfence.verify.canary.stand_in import Flaw, Shape, StandIn
from tests.detection.chancy import Chancy

REQUESTS, TOKENS = 10_000, 10_000_000


@dataclass(frozen=True)
class Tried:
    """A check against a stand-in."""

    check: CanaryCheck
    shape: Shape
    flaw: Flaw

    @property
    def target(self) -> Target:
        return StandIn(self.shape).target


@dataclass(frozen=True)
class Seen:
    """How often a leak of some rate was seen."""

    rate: float
    seen: int
    runs: int

    @property
    def share(self) -> float:
        return self.seen / self.runs


def first_control(check: CanaryCheck) -> Tried:
    """Return the check with the first of its controls, on the first shape that fits."""
    control = CONTROLS[check.NAME]
    shape = Shape.PAIR if Shape.PAIR in control.shapes else control.shapes[0]
    return Tried(check, shape, control.flaws[0])


def probing(tried: Tried, seed: int = 1) -> Probing:
    """Return what the formula takes for this check: what it says of a run that passes."""
    result, session = _once(tried, 0.0, seed)
    assert result.outcome is Outcome.PASSED, result
    found = probing_of(tried.check.NAME, session.target, session.budget.asked)
    assert found is not None, tried
    return found


def measure(tried: Tried, rate: float, runs: int, seed: int) -> Seen:
    """Run a check so many times on a stand-in that leaks at this rate; seen is whatever is no pass."""
    outcomes = [_once(tried, rate, seed * 1_000_003 + run)[0].outcome for run in range(runs)]
    return Seen(rate, sum(outcome is not Outcome.PASSED for outcome in outcomes), runs)


def likely(probability: float, runs: int, mistake: float) -> tuple[int, int]:
    """Return from how many to how many of the runs see it, unless something of at most this probability happens.

    Exact, from the binomial distribution; half of the mistake on each side.
    """
    chances = [_binomial(probability, runs, seen) for seen in range(runs + 1)]
    return _cut(chances, mistake / 2), runs - _cut(chances[::-1], mistake / 2)


def interval(seen: Seen) -> tuple[float, float]:
    """Return the shares between which the probability lies with 95 % (Wilson's score interval)."""
    z = 1.959964
    middle = (seen.share + z * z / (2 * seen.runs)) / (1 + z * z / seen.runs)
    half = (
        z * math.sqrt(seen.share * (1 - seen.share) / seen.runs + (z / (2 * seen.runs)) ** 2) / (1 + z * z / seen.runs)
    )
    return max(0.0, middle - half), min(1.0, middle + half)


def _once(tried: Tried, rate: float, seed: int) -> tuple[Result, Session]:
    chance = random.Random(seed)
    stand_in = Chancy(tried.shape, tried.flaw, rate, random.Random(seed + 1))
    session = Session(stand_in, stand_in.target, Budget(REQUESTS, TOKENS, 0), chance)
    return asyncio.run(tried.check.check(session)), session


def _binomial(probability: float, runs: int, seen: int) -> float:
    return math.comb(runs, seen) * probability**seen * (1 - probability) ** (runs - seen)


def _cut(chances: list[float], most: float) -> int:
    """Return how many of the first are together less likely than this."""
    total, count = 0.0, 0
    for chance in chances:
        total += chance
        if total > most:
            break
        count += 1
    return count
