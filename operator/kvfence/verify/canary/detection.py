"""How likely a check sees a leak, as a function of how much it asked and how often the leak happens.

A *probe* is one request whose answer would show the leak if it happened to this request. A leak of rate `r` happens to
one in `1/r` of them. Where it happens, the probe shows it with probability `s`, its *sensitivity*: a marker may break
off before a run of it is out. So one probe shows nothing with probability `1 - r*s`, and `n` of them see the leak with

    1 - (1 - r*s)^n

if the leak strikes each probe whatever it does to the others. Probes that run at the same time share batches and pages,
so that a leak may as well strike a whole *round* of them or none. With `k` probes in a round, and as many rounds as
`m`, that gives

    1 - (1 - r*(1 - (1 - s)^k))^m

and this is the least that any way to depend on each other within a round can give: the chance to see nothing is the
mean of `(1 - s)^(probes of the round that were struck)`, which is convex in that number, and a convex mean is greatest
where all are struck together or none. What is assumed in both is that rounds do not depend on each other, and that `s`
and `r` stay what they are while the check runs. Neither holds for a leak that needs a condition that the check never
makes (a load, a length, a peer that dies): no number of probes sees that one.

`s` is not known but measured, on the controls: stand-ins in which the leak always happens.

Pure: no clock, no IO.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Probing:
    """How much was asked, and how well one question sees."""

    rounds: int
    """From 0."""
    at_once: int = 1
    """Probes in a round, from 1."""
    sensitivity: float = 1.0
    """Above 0 and at most 1: how likely one probe shows a leak that happened to it."""

    def __post_init__(self) -> None:
        """Raise `ValueError` for what is out of range."""
        if self.rounds < 0 or self.at_once < 1 or not 0 < self.sensitivity <= 1:
            raise ValueError(f"no such probing: {self}")

    @property
    def probes(self) -> int:
        """All of them."""
        return self.rounds * self.at_once

    @property
    def together(self) -> Probing:
        """The same where a leak strikes all of a round or none: each round is then one probe, of better sight."""
        return Probing(self.rounds, 1, seen_at_least_once(self.sensitivity, self.at_once))


def detected(probing: Probing, rate: float) -> float:
    """Return the probability that a leak is seen which strikes each probe on its own.

    Args:
        probing: what was asked.
        rate: probability that it strikes a probe, from 0 to 1.

    Raises:
        ValueError: when the rate is out of range.
    """
    _check(rate)
    return seen_at_least_once(rate * probing.sensitivity, probing.probes)


def detected_at_least(probing: Probing, rate: float) -> float:
    """Return the least probability that a leak is seen, however the probes of a round depend on each other.

    Args:
        probing: what was asked.
        rate: probability that it strikes a probe, from 0 to 1.

    Raises:
        ValueError: when the rate is out of range.
    """
    return detected(probing.together, rate)


def rate_seen(probing: Probing, probability: float) -> float | None:
    """Return the smallest rate that is seen with at least this probability; none when even a leak that always happens
    is not.

    Args:
        probing: what was asked; `probing.together` for the least.
        probability: from 0 up to, and without, 1.

    Raises:
        ValueError: when the probability is out of range.
    """
    _check(probability, below_one=True)
    if probing.probes == 0:
        return None if probability > 0 else 0.0
    rate = -math.expm1(math.log1p(-probability) / probing.probes) / probing.sensitivity
    if rate > 1:  # or a rounding away from it
        return 1.0 if detected(probing, 1.0) >= probability else None
    return rate


def rounds_needed(at_once: int, sensitivity: float, rate: float, probability: float) -> int:
    """Return how many rounds see a leak that strikes each probe on its own with at least this probability.

    Args:
        at_once: probes in a round, from 1.
        sensitivity: of a probe; see `Probing`.
        rate: of the leak; above 0 and at most 1.
        probability: from 0 up to, and without, 1.

    Raises:
        ValueError: when one of them is out of range.
    """
    one_round = Probing(1, at_once, sensitivity)
    _check(rate)
    _check(probability, below_one=True)
    if rate == 0:
        raise ValueError("no number of probes sees what never happens")
    unseen = 1 - rate * one_round.sensitivity
    if unseen == 0 or probability == 0:
        return min(1, math.ceil(probability))
    guess = math.ceil(math.log1p(-probability) / math.log1p(-rate * sensitivity) / at_once)
    enough = (n for n in (guess - 1, guess, guess + 1) if n >= 0)  # the quotient may be a rounding off
    return next(n for n in enough if detected(Probing(n, at_once, sensitivity), rate) >= probability)


def seen_at_least_once(chance: float, times: int) -> float:
    """Return the probability that something of this chance happens at least once in so many independent times."""
    if chance >= 1:
        return 1.0 if times > 0 else 0.0
    return -math.expm1(times * math.log1p(-chance))


def _check(probability: float, *, below_one: bool = False) -> None:
    """Raise `ValueError` unless it is one; NaN is none."""
    if not 0 <= probability <= 1 or (below_one and probability == 1):
        raise ValueError(f"{probability} is out of range for a probability")
