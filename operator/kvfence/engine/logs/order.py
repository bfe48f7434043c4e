"""Puts facts in the order of time, where their stamps tell it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvfence.engine.logs.facts import Fact

JITTER = 10.0
"""Seconds by which lines of several processes may stand in the wrong order without anybody having sorted them."""

ONE_CLOCK = 120.0
"""Seconds by which two clocks may drift apart over a log: a collector hands lines on late."""

_HALF_DAY = 43_200.0
_DAY = 86_400.0
_TIME = re.compile(
    r"(?:(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2}) )?(?P<h>[0-9]{2}):(?P<m>[0-9]{2}):(?P<s>[0-9]{2}(?:\.[0-9]+)?)"
)


@dataclass(frozen=True, slots=True)
class Moment:
    """A fact, and when it was."""

    fact: Fact
    at: float | None
    """Seconds on a clock of which only differences mean something; none where it is not told."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Facts from the first to the last."""

    moments: tuple[Moment, ...]
    sorted: bool
    """The lines stood in another order."""
    shuffled: bool
    """The lines stood in no order, so that of two within one second it is not known which came first."""


def timeline(facts: Sequence[Fact]) -> Timeline:
    """Return the facts in the order of time; in that of their lines where time is not told."""
    times = _times(facts)
    told = [time for time in times if time is not None]
    steps = [later - earlier for earlier, later in pairwise(told)]
    if not any(step < 0 for step in steps):
        return Timeline(tuple(map(Moment, facts, times)), sorted=False, shuffled=False)
    if not any(step > 0 for step in steps) and told[0] - told[-1] > JITTER:
        return Timeline(tuple(map(Moment, reversed(facts), reversed(times))), sorted=True, shuffled=False)
    latest, worst = told[0], 0.0
    for time in told:
        latest = max(latest, time)
        worst = max(worst, latest - time)
    if worst <= JITTER and max(told) - min(told) > worst:
        return Timeline(_sorted(facts, times), sorted=False, shuffled=False)
    return Timeline(_sorted(facts, times), sorted=True, shuffled=True)


def _sorted(facts: Sequence[Fact], times: Sequence[float | None]) -> tuple[Moment, ...]:
    """Sort by time; what has no stamp stays behind what it stood behind."""
    keyed, last = [], min(time for time in times if time is not None)
    for fact, time in zip(facts, times, strict=True):
        last = last if time is None else time
        keyed.append((last, Moment(fact, time)))
    return tuple(moment for _, moment in sorted(keyed, key=lambda pair: pair[0]))


def _times(facts: Sequence[Fact]) -> list[float | None]:
    """Return the times of one clock: the collector's, and the engine's own set by it; else the engine's own."""
    outer = [_seconds(fact.prefix.outer) for fact in facts]
    inner = _inner([fact.prefix.inner for fact in facts])
    told = [(out, own) for out, own in zip(outer, inner, strict=True) if out is not None]
    if not told:
        return inner
    if len(told) == len(facts) or not any(own is not None for own in inner):
        return outer
    apart = [out - own for out, own in told if own is not None]
    if not apart:
        return [None] * len(facts)
    if max(apart) - min(apart) > ONE_CLOCK:
        return inner
    fill = [None if own is None else own + apart[0] for own in inner]
    return [out if out is not None else own for out, own in zip(outer, fill, strict=True)]


def _inner(times: Sequence[str | None]) -> list[float | None]:
    """Return the times of the engine's own clock: with dates where any has one."""
    dated = any(time is not None and "-" in time for time in times)
    seconds = [None if time is None or (dated and "-" not in time) else _seconds(time) for time in times]
    return seconds if dated else _over_midnight(seconds)


def _over_midnight(times: Sequence[float | None]) -> list[float | None]:
    """Give times of the day the days that passed between them."""
    found: list[float | None] = []
    days, last = 0.0, None
    for time in times:
        if time is not None and last is not None and last - time > _HALF_DAY:
            days += _DAY
        last = time if time is not None else last
        found.append(None if time is None else time + days)
    return found


def _seconds(text: str | None) -> float | None:
    match = _TIME.fullmatch(text) if text is not None else None
    if match is None:
        return None
    hour, minute, second = int(match["h"]), int(match["m"]), float(match["s"])
    if hour > 23 or minute > 59 or second >= 61:
        return None
    day = 0.0
    if match["day"] is not None:
        try:
            day = datetime.fromisoformat(match["day"]).toordinal() * _DAY
        except ValueError:
            return None
    return day + hour * 3600 + minute * 60 + second
