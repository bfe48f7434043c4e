"""A pair with plants in it behind its doors, and the router and the users before them."""

from __future__ import annotations

import random
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from e2e import progress
from e2e.door.engines import Given, Injection, started
from e2e.engines.servers import SERVED_NAME, Role, Server
from e2e.integrity import prompts
from e2e.integrity.arming import PACKAGE, SETTING, Plants
from e2e.integrity.legs import Asked, Legs, admit
from e2e.integrity.outcome import Outcome
from kvfence.engine.pair import ROOMS, Client, PairAnswer, Question
from kvfence.verify import judging, markers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from e2e.door.engines import Engine
    from e2e.integrity.prompts import Prompt
    from kvfence.domain.asking import Answer

CAP = 1000
DECODE_POOL = 1024
"""Tokens. Small, so that four users A have had all of it."""
PREFILL_POOL = 4096

WAITING_SECONDS = 4
"""How long decode waits for a transfer that hangs."""
RELEASE_SECONDS = 1
"""How long it then holds the pages for the acknowledgement that does not come."""

FUSE = ("--contained-limit", "1000000")
"""One attack after the other on one pair: what is contained must not close it. What escapes does."""

TIMEOUT_SECONDS = 20.0
USER_PAGES = 20
"""That hold the marker of a user A."""


@dataclass(frozen=True)
class Defence:
    """What is switched on in both engines of a pair."""

    name: str
    launcher: tuple[str, ...] = ()
    """Arguments of kvfence's launcher."""
    sglang: tuple[str, ...] = ()
    """Arguments of SGLang."""


UNDEFENDED = Defence("none")


@dataclass
class Scene(Legs):
    """One started pair, both doors open."""

    plants: Plants
    chance: random.Random
    users: int
    """A, whose markers fill decode's pool."""
    planted: list[str] = field(default_factory=list)
    """The markers of all users A so far."""

    def renew(self, *engines: Engine) -> None:
        """Start engines anew, both unless some are named, and open the doors."""
        engines = engines or (self.prefill, self.decode)
        names = ", ".join(engine.server.name for engine in engines)
        with progress.step(f"starting SGLang behind the door anew: {names}", f"about {10 + 10 * len(engines)} s"):
            for engine in engines:
                engine.start()
            for engine in engines:
                engine.wait_until_started()
        admit((self.prefill, self.decode), CAP)

    def draw(self) -> str:
        """Return a marker that nobody has."""
        return markers.draw(1, self.chance, prompts.LENGTH)[0]

    def room(self) -> int:
        """Return a room that nobody has."""
        return self.chance.randrange(ROOMS)

    async def ask(self, prompt: Prompt, max_tokens: int, room: int) -> PairAnswer:
        """Ask both legs, as a router does."""
        async with Client(TIMEOUT_SECONDS) as client:
            return await client.ask(self.pair, Question(SERVED_NAME, prompt.text, max_tokens), room)

    async def ask_decode(self, prompt: Prompt, max_tokens: int, **fields: Any) -> Answer:
        """Ask decode alone, as whoever reaches it can."""
        async with Client(TIMEOUT_SECONDS) as client:
            return await client.ask_one(
                self.pair.decode_url, Asked(SERVED_NAME, prompt.text, max_tokens, fields=fields)
            )

    def user_a(self) -> Prompt:
        """Return the prompt of a user A with a marker of its own, which must come out of nobody else's answer."""
        self.planted.append(self.draw())
        return prompts.planting(self.planted[-1], USER_PAGES, self.chance)

    async def plant(self) -> int:
        """Have one user A ask and get its answer; return its room."""
        room = self.room()
        await self.ask(self.user_a(), 4, room)
        return room

    async def fill(self) -> int:
        """Have users A leave their markers in all of decode's pool; return the room of the last."""
        rooms = [await self.plant() for _ in range(self.users)]
        return rooms[-1]

    def outcome(self, prompt: Prompt, answer: PairAnswer | Answer, room: int) -> Outcome:
        """Return what B's answer means, with the plant on the request of a room."""
        prefill, decode = (answer.prefill, answer.decode) if isinstance(answer, PairAnswer) else (None, answer)
        legs = [decode] if prefill is None else [prefill, decode]
        leaked = tuple(dict.fromkeys(found for leg in legs for found in judging.told(leg, self.planted)))
        return Outcome(bool(self.plants.told("fired", room)), prefill, decode, prompt.expected, leaked)


@contextmanager
def opened(
    injection: Injection,
    folder: Path,
    defence: Defence = UNDEFENDED,
    page_size: int = prompts.PAGE,
    fuse: tuple[str, ...] = FUSE,
    decode_pool: int = DECODE_POOL,
) -> Iterator[Scene]:
    """Start a pair with plants and a defence, and open its doors.

    Args:
        injection: kvfence's own part.
        folder: an existing one, for logs and for the plants.
        defence: what is on in both engines.
        page_size: tokens of a page of KV.
        fuse: what the launchers are told of it.
        decode_pool: tokens of decode's pool.
    """
    release = {"SGLANG_DISAGGREGATION_DEFERRED_DECODE_KV_RELEASE_TIMEOUT": str(RELEASE_SECONDS)}
    given = Given((*defence.launcher, *fuse), release | {SETTING: str(folder)})
    pools = {Role.PREFILL: PREFILL_POOL, Role.DECODE: decode_pool}
    servers = [_server(role, defence, pool, page_size) for role, pool in pools.items()]
    with started(injection, folder, *servers, first=PACKAGE, given=given) as (prefill, decode):
        plants = Plants(folder)
        assert plants.told("loaded") == len(servers), "the plants are not in both schedulers"
        admit((prefill, decode), CAP)
        yield Scene(prefill, decode, plants, random.SystemRandom(), -(-decode_pool // (USER_PAGES * prompts.PAGE)))


def _server(role: Role, defence: Defence, pool: int, page_size: int) -> Server:
    # Decode keeps free what requests may still generate; the default is half of this pool.
    extra = ("--num-reserved-decode-tokens", "32", *defence.sglang)
    return Server(role.value, role, pool_tokens=pool, page_size=page_size, extra=extra, waiting_seconds=WAITING_SECONDS)
