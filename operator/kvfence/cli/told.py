"""Puts together what a server says, what its log says and what its pod says of one engine. Pure.

The running server wins over its log, and both over how the pod was started: each only fills in what is not told.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kvfence.domain.diagnosis.filling import filled
from kvfence.domain.diagnosis.seen import EngineSeen, RouterSeen, Seen, Unreadable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvfence.cli.pods import Container


def complete(found: Sequence[Seen]) -> bool:
    """Whether nothing is missing that a log could add: then the log, which may be large, is not fetched."""
    engines = [one for one in found if isinstance(one, EngineSeen)]
    if not engines:
        return bool(found) and all(isinstance(one, RouterSeen) for one in found)
    return all(engine.context_fits is not None and engine.version is not None for engine in engines)


def joined(answers: Sequence[Seen], logged: Sequence[Seen]) -> tuple[Seen, ...]:
    """Return what a server answered, with what is missing in it from its log.

    Args:
        answers: of the running server.
        logged: of its log, of the same start.
    """
    if any(isinstance(one, EngineSeen | RouterSeen) for one in answers):
        return tuple(_filled(one, answers, logged) if isinstance(one, EngineSeen) else one for one in answers)
    if any(isinstance(one, EngineSeen | RouterSeen) for one in logged):
        return tuple(logged)
    return (*answers, *logged)


def of_container(found: Sequence[Seen], container: Container) -> tuple[Seen, ...]:
    """Return what was found with what the pod says of the container it was found in."""
    return tuple(_of_container(one, container) for one in found)


def _filled(engine: EngineSeen, answers: Sequence[Seen], logged: Sequence[Seen]) -> EngineSeen:
    """Fill in from the one engine of the log that can be meant; with two there is no telling which."""
    engines = [one for one in answers if isinstance(one, EngineSeen)]
    others = [one for one in logged if isinstance(one, EngineSeen)]
    alone = len(engines) == 1 and len(others) == 1
    same = others if alone else [one for one in others if one.rank == engine.rank and one.rank is not None]
    if len(same) != 1:
        return engine
    (log,) = same
    return filled(engine, log)


def _of_container(one: Seen, container: Container) -> Seen:
    if isinstance(one, Unreadable):
        return one
    if isinstance(one, RouterSeen):
        shown = tuple(dict.fromkeys((*one.keys_shown, *container.keys_shown)))
        return replace(one, keys_shown=shown, notes=(*one.notes, *container.notes))
    pod = EngineSeen(
        one.source,
        settings=container.settings,
        environment=container.environment,
        keys_shown=container.keys_shown,
        notes=container.notes,
    )
    return filled(one, pod)
