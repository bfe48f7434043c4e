"""Ordinary and hostile users at once, on a pair with all defences and on one without: what crossed over in each."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from e2e import progress
from e2e.door.engines import Given, Injection, started
from e2e.engines import processes
from e2e.engines.servers import Role, Server
from e2e.integrity.defences import ALL
from e2e.integrity.legs import Legs, admit
from e2e.integrity.outcome import Verdict
from e2e.integrity.traffic import CAP, Seen, User, ask_all
from kvfence.engine.pair import Pair

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PREFILL_POOL = 4096
DECODE_POOL = 2048
"""Tokens: a few users fill it, so that pages are used again soon."""
RESERVED = 32
"""Tokens that decode keeps free for each request, whatever it may generate."""
WAITING_SECONDS = 120


@contextmanager
def defended(injection: Injection, folder: Path, page_size: int, reserved: int = RESERVED) -> Iterator[Legs]:
    """Start a pair with all defences enforced, and open its doors."""
    servers = _servers(page_size, reserved=reserved)
    with started(injection, folder, *servers, given=Given(ALL.launcher)) as (prefill, decode):
        admit((prefill, decode), CAP)
        yield Legs(prefill, decode)


@contextmanager
def bare(folder: Path, page_size: int) -> Iterator[Pair]:
    """Start a pair of SGLang alone, without anything of kvfence."""
    with processes.running(_servers(page_size, context=CAP), folder) as (prefill, decode):
        yield Pair(prefill.url, decode.url, prefill.bootstrap_host, prefill.bootstrap_port)


def asked(users: list[User], pair: Pair, who: str) -> Seen:
    """Ask for all of them, and say how far it is."""
    seen = Seen()
    with progress.step(f"{len(users)} users, {who}", f"about {max(1, len(users) // 150)} min"):
        asyncio.run(ask_all(users, pair, seen))
    return seen


def faults(seen: Seen, counts: dict[str, Any]) -> list[str]:
    """Return what should not be after ordinary and hostile users met a pair with all defences. Pure."""
    wrong = [f"{seen.of(verdict)} answers {verdict}" for verdict in (Verdict.LEAKED, Verdict.WRONG) if seen.of(verdict)]
    wrong += [f"{seen.unwanted} users got something else than they should have"] if seen.unwanted else []
    for name, said in counts.items():
        if said["found"] or said["requestsFailed"] or said["requestsUnverified"]:
            wrong.append(f"{name} found what is not there, or left a request out: {said}")
        if said["pagesVerified"] != said["pagesExpected"] or not said["pagesVerified"]:
            wrong.append(f"{name} verified {said['pagesVerified']} of {said['pagesExpected']} pages")
    return wrong


def _servers(page_size: int, context: int = 4096, reserved: int = RESERVED) -> list[Server]:
    extra = ("--num-reserved-decode-tokens", str(reserved))
    pools = {Role.PREFILL: PREFILL_POOL, Role.DECODE: DECODE_POOL}
    return [
        Server(
            role.value,
            role,
            context_length=context,
            pool_tokens=pool,
            page_size=page_size,
            extra=extra,
            waiting_seconds=WAITING_SECONDS,
        )
        for role, pool in pools.items()
    ]
