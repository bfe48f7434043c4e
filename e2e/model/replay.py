"""Plays a counterexample on the code that a decode engine has: `TagTable`, `coverage`, `handover`, `KvPages`.

The hooks of `kvfence_engine/hooked/` need SGLang. What they do between these is written down here again, beside what
SGLang does, as short as it can be: `engine.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from e2e.model.engine import Engine, NotGivenError
from e2e.model.events import request
from e2e.model.telling import content

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from e2e.model.defences import Defence
    from e2e.model.events import Event


class Ending(Enum):
    """How a replay ends."""

    LEAKED = "leaked"
    """A request read what is not its own, and nothing objected."""
    FALSE_ALARM = "false alarm"
    """A request was refused, although nothing went wrong."""
    REFUSED = "refused"
    """A request was refused that reads what is not its own later in the counterexample."""
    NOT_GIVEN = "not given"
    """A page could not be had."""
    RIGHT = "right"
    """All happened as in the counterexample, and the pages that were read held what they should."""


@dataclass(frozen=True)
class Played:
    """What became of it."""

    ending: Ending
    step: int
    """The event with which it ended."""
    what: str


def play(happened: Sequence[Event], on: Collection[Defence]) -> Played:
    """Let the same things happen to an engine with these defences, up to where it comes to an end."""
    engine, last = Engine(on), len(happened) - 1
    for step, event in enumerate(happened):
        try:
            engine.let(event)
        except NotGivenError as why:
            return Played(Ending.NOT_GIVEN, step, str(why))
        if event.kind == "verify" and (ended := _verified(engine, event, step, is_last=step == last)):
            return ended
        if event.kind == "read" and engine.was_read != engine.reader:
            return Played(Ending.LEAKED, step, f"{request(engine.reader)} reads {content(engine.was_read)}")
    return Played(Ending.RIGHT, last, "every page that is read holds the reader's own KV")


def _verified(engine: Engine, event: Event, step: int, *, is_last: bool) -> Played | None:
    """Compare what a verification found with the counterexample; none when that goes on."""
    row, passed = event.numbers
    why = ", ".join(engine.objections)
    if why and passed:
        return Played(Ending.REFUSED, step, why)
    if why and is_last:
        return Played(Ending.FALSE_ALARM, step, why)
    if not why and not passed:
        return Played(Ending.RIGHT, step, "nothing is found, and there is nothing to find")
    if why:
        engine.refuse(row)
    return None


def differences(happened: Sequence[Event], on: Collection[Defence]) -> list[str]:
    """Return where the code, with the same defences, does something else than the model on its way."""
    engine, found = Engine(on), list[str]()
    for step, event in enumerate(happened):
        try:
            engine.let(event)
        except NotGivenError as why:
            return [*found, f"{step}: {why}"]
        if event.kind == "verify":
            row, passed = event.numbers
            if bool(engine.objections) is bool(passed):
                return [*found, f"{step}: {event}, and the code has found {engine.objections}"]
            if engine.objections:
                engine.refuse(row)
        if event.kind == "read" and engine.was_read != event.numbers[2]:
            found.append(f"{step}: {event}, and the code has read {engine.was_read}")
    return found
