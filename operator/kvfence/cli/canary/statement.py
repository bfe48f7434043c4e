"""Says in words how small a leak a check would have seen. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.verify.canary.detection import detected, detected_at_least, rate_seen

if TYPE_CHECKING:
    from kvfence.verify.canary.detection import Probing

SURE = 0.95
"""With which probability a leak would have been seen, where the rate is asked for."""

ONE_IN = (2, 10, 100, 1000, 10000)
"""Rates of leaks in the table of probabilities: one in so many requests."""


def statement(probing: Probing) -> str:
    """Return one sentence on what this much asking sees, the way in which requests depend on each other left open."""
    seen = rate_seen(probing, SURE)
    if seen is None:
        chance = detected_at_least(probing, 1.0)
        return f"Even a leak in every request would have been seen with p = {chance:.2f} only."
    one_in = int(1 / seen)
    least = detected_at_least(probing, 1 / one_in)
    worse = f"; at least {least:.2f} if requests at the same time leak together" if probing.at_once > 1 else ""
    return (
        f"A leak of 1 in {one_in:,} requests would have been seen with p = {detected(probing, 1 / one_in):.2f}{worse}."
    )


def curve(probing: Probing) -> list[dict[str, float | int]]:
    """Return the probabilities at some rates, for programs."""
    return [
        {
            "oneIn": one_in,
            "independent": round(detected(probing, 1 / one_in), 6),
            "atLeast": round(detected_at_least(probing, 1 / one_in), 6),
        }
        for one_in in ONE_IN
    ]
