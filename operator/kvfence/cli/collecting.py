"""Collects what the targets tell: several at once, in the order in which they were named."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.cli.reading import read_stream
from kvfence.cli.targets import LogOrBody, PairOfUrls, Pipe, Pod, Selected, Target, Url
from kvfence.cli.threads import in_thread
from kvfence.domain.diagnosis.seen import EngineSeen, Seen, Unreadable
from kvfence.engine.bodies import inspect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvfence.cli.cluster import Cluster
    from kvfence.engine.web import Web

AT_ONCE = 8
"""Targets that are read at the same time; the others wait."""


@dataclass(frozen=True, slots=True)
class Where:
    """By which ways targets are reached."""

    web: Web
    cluster: Cluster


async def collect(targets: Sequence[Target], where: Where) -> tuple[Seen, ...]:
    """Return what all targets tell, each in its place whichever answered first."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(target: Target) -> tuple[Seen, ...]:
        async with turn:
            return await _seen(target, where)

    found = await asyncio.gather(*map(one, targets))
    return tuple(seen for of_one in found for seen in of_one)


async def _seen(target: Target, where: Where) -> tuple[Seen, ...]:
    match target:
        case Url(url):
            return await inspect(where.web, url, url)
        case PairOfUrls(prefill, decode):
            halves = await asyncio.gather(
                *(
                    _half(where.web, one.url, role, f"{prefill.url},{decode.url}")
                    for one, role in ((prefill, RoleType.PREFILL), (decode, RoleType.DECODE))
                )
            )
            return halves[0] + halves[1]
        case LogOrBody(path):
            return await in_thread(lambda: _file(path))
        case Pipe():
            return await in_thread(_pipe)
        case Selected(selector):
            return await where.cluster.selected(selector)
        case Pod(name):
            return await where.cluster.named(name)


async def _half(web: Web, url: str, role: RoleType, pair: str) -> tuple[Seen, ...]:
    """Ask one half of a pair. The user said which one it is, which counts where the server does not tell."""
    found = await inspect(web, url, f"{url} ({role.value.lower()})")
    return tuple(replace(_with_role(one, role), pair=pair) if isinstance(one, EngineSeen) else one for one in found)


def _with_role(engine: EngineSeen, role: RoleType) -> EngineSeen:
    if engine.role in {None, role}:
        return replace(engine, role=role)
    told = "nobody's half" if engine.role is RoleType.UNIFIED else engine.role.value.lower()
    note = f"{engine.source} was named as {role.value.lower()} and says that it is {told}; a pair is PREFILL,DECODE."
    return replace(engine, notes=(*engine.notes, note))


def _file(path: str) -> tuple[Seen, ...]:
    try:
        with Path(path).open("rb") as stream:
            return read_stream(stream, path)
    except OSError as error:
        return (Unreadable(path, f"The file cannot be read: {error.strerror or type(error).__name__}."),)


def _pipe() -> tuple[Seen, ...]:
    """Read standard input through an object of its own: Python's waits at exit for whoever still reads from it."""
    source = "standard input"
    try:
        with open(sys.stdin.fileno(), "rb", closefd=False) as stream:
            return read_stream(stream, source)
    except (OSError, ValueError, AttributeError) as error:  # closed by who started us, or none at all
        why = getattr(error, "strerror", None) or "it is closed"
        return (Unreadable(source, f"Standard input cannot be read: {why}. Pipe a log into it."),)
