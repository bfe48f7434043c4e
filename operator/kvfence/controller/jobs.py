"""What takes time: proving engines and fronts, and opening doors. One job at a time for each pool, beside the queue.

A job asks each door anew before it tells it something, and works with the boot that the decision was about: if another
boot answers, nothing is told to it, and the next look at the pool decides again.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kvfence.controller.gathering import bracketed
from kvfence.controller.memory import Fronts
from kvfence.controller.objects import worker_url
from kvfence.domain.asking import Pair
from kvfence.domain.capacity import Measured
from kvfence.domain.decisions import Admit, ProveFronts, ProvePairs
from kvfence.domain.engines import DoorState
from kvfence.domain.pools import pools_of
from kvfence.domain.verdicts import Check, Outcome, Verdict
from kvfence.engine.admission import Admission
from kvfence.engine.door import DoorStatus, Refused
from kvfence.engine.pair import Client
from kvfence.engine.web import Web
from kvfence.render.front import OPERATOR_PORT, USERS_PORT
from kvfence.verify import front_door, pair_suite
from kvfence.verify.evidence import Evidence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.controller.memory import PoolMemory
    from kvfence.domain.decisions import Step
    from kvfence.domain.engines import Engine, Partner
    from kvfence.domain.pods import PodFacts
    from kvfence.engine.admission import Signer
    from kvfence.engine.door import DoorClient

EXPIRES_SECONDS = 120
"""Of an admission: nodes' clocks may differ by some of that."""

ASK_SECONDS = 30.0
"""For a short prompt of a check, answer and all."""

TOKENS_PER_SECOND = 2_000
"""As slow as a prefill engine may be with the longest prompt: some large models are no faster."""

FRONT_SECONDS = 90.0
"""At most for one request through a front: the longest prompt that has to be refused is a large one."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Subject:
    """The pool that a job is about."""

    uid: str
    revision: str
    served_name: str
    requested_tokens: int
    peers: tuple[str, ...]
    partners: Mapping[str, tuple[Partner, ...]] = field(default_factory=dict)
    """Of each engine, by the UID of its pod."""
    enforced: frozenset[str] = frozenset()
    """Defences of pages that every engine must have on, by their names in `spec.integrity`."""


@dataclass(frozen=True)
class Jobs:
    """Does the steps that the decisions ask for.

    Attributes:
        doors: to launchers.
        signer: signs admissions.
    """

    doors: DoorClient
    signer: Signer

    async def do(self, step: Step, subject: Subject, memory: PoolMemory) -> None:
        """Do one step, and leave in the memory what came of it."""
        match step:
            case ProvePairs(pairs, cap):
                await self._prove_pairs(pairs, cap, subject, memory)
            case ProveFronts():
                await self._prove_fronts(step, subject, memory)
            case Admit(engines, cap):
                await asyncio.gather(*(self._open(engine, cap, subject, memory) for engine in engines))

    async def _prove_pairs(
        self, pairs: tuple[tuple[Engine, Engine], ...], cap: int, subject: Subject, memory: PoolMemory
    ) -> None:
        for together in rounds(pairs):
            done = await asyncio.gather(*(self._prove_pair(pair, cap, subject) for pair in together))
            for pair, verdicts in zip(together, done, strict=True):
                for engine in pair:
                    assert engine.boot is not None
                    if not engine.is_open:
                        memory.add(engine.boot.nonces, cap, verdicts)
                if any(verdict.outcome is Outcome.FAILED for verdict in verdicts):
                    await self._shut_for_good(pair, cap, subject)

    async def _shut_for_good(self, pair: tuple[Engine, Engine], cap: int, subject: Subject) -> None:
        """Tell the doors of boots that failed, so that an operator after this one knows it too."""
        for engine in pair:
            if not engine.is_open:
                said = await self._tell(engine, DoorState.TAINTED, cap, subject, ())
                if not isinstance(said, DoorStatus):
                    why = said.message if isinstance(said, Refused) else said
                    log.error("Pod %s failed its checks, and its door was not shut for good: %s", engine.name, why)

    async def _prove_pair(self, pair: tuple[Engine, Engine], cap: int, subject: Subject) -> tuple[Verdict, ...]:
        prefill, decode = pair
        name = f"pod {prefill.name} with pod {decode.name}"
        limits = _limits(prefill, decode, cap, subject)
        asked = self._evidence(pair, subject)
        passes = [secrets.token_urlsafe(16) for _ in range(pair_suite.passes_needed(limits, asked))]
        for engine in pair:
            if not engine.is_open and (why := await self._let_canaries_in(engine, cap, subject, passes)):
                return (Verdict(Check.MARKER_ISOLATION, Outcome.NOT_JUDGED, name, why),)
        which = pair_suite.Subject(name, _pair(prefill, decode), subject.served_name)
        async with Client(ASK_SECONDS + cap / TOKENS_PER_SECOND) as client:
            return await pair_suite.prove_pair(client, which, limits, iter(passes), random.SystemRandom(), asked)

    def _evidence(self, pair: tuple[Engine, Engine], subject: Subject) -> Evidence | None:
        """Ask what the engines can show of themselves, where their doors are not open yet."""
        legs = zip(("prefill", "decode"), pair, strict=True)
        hosts = {leg: engine.pod.ip for leg, engine in legs if not engine.is_open and engine.pod.ip is not None}
        return Evidence(self.doors, hosts, subject.enforced) if hosts and subject.enforced else None

    async def _prove_fronts(self, step: ProveFronts, subject: Subject, memory: PoolMemory) -> None:
        count = front_door.front_passes_needed() * len(step.routers)
        passes = [secrets.token_urlsafe(16) for _ in range(count)]
        doors = await asyncio.gather(
            *(self._let_canaries_in(engine, step.cap, subject, passes) for engine in step.engines if not engine.is_open)
        )
        which = Fronts(subject.revision, step.cap, frozenset(router.uid for router in step.routers))
        if why := next((words for words in doors if words), ""):
            memory.fronts = {which: (Verdict(Check.FRONT_DOOR, Outcome.NOT_JUDGED, "the front", why),)}
            return
        left = iter(passes)
        async with Web(FRONT_SECONDS) as web:
            fronts = [_front(router, step, subject) for router in step.routers]
            memory.fronts = {which: tuple([await front_door.prove_front(web, front, left) for front in fronts])}

    async def _open(self, engine: Engine, cap: int, subject: Subject, memory: PoolMemory) -> None:
        said = await self._tell(engine, DoorState.OPEN, cap, subject, ())
        assert engine.boot is not None
        if isinstance(said, Refused):
            memory.refusals[engine.boot.nonces] = said.message
        elif isinstance(said, str):
            log.info("The door of pod %s was not told to open: %s", engine.name, said)

    async def _let_canaries_in(self, engine: Engine, cap: int, subject: Subject, passes: list[str]) -> str:
        """Return why not; empty when the door takes these passes now."""
        hashes = tuple(hashlib.sha256(one.encode()).hexdigest() for one in passes)
        said = await self._tell(engine, DoorState.CANARY, cap, subject, hashes)
        if isinstance(said, Refused):
            return f"the door of pod {engine.name} did not take its admission: {said.message}"
        return f"pod {engine.name}: {said}" if isinstance(said, str) else ""

    async def _tell(
        self, engine: Engine, door: DoorState, cap: int, subject: Subject, passes: tuple[str, ...]
    ) -> DoorStatus | Refused | str:
        """Sign and hand over an admission for the boot that was decided about; return why not in words."""
        assert engine.boot is not None
        assert engine.pod.ip is not None
        now = await self.doors.status(engine.pod.ip)
        if not isinstance(now, DoorStatus):
            return f"its door does not answer ({now.why})"
        if now.nonces != engine.boot.nonces:
            return "it was started anew meanwhile"
        admission = Admission(
            pool=subject.uid,
            pod=engine.pod.uid,
            nonces=now.nonces,
            epoch=now.epoch + 1,
            door=door,
            cap=cap,
            peers=subject.peers,
            passes=passes,
            expires=int(time.time()) + EXPIRES_SECONDS,
            partners=subject.partners.get(engine.pod.uid, ()) if now.key else (),
        )
        said = await self.doors.admit(engine.pod.ip, self.signer.sign(admission))
        return said if isinstance(said, DoorStatus | Refused) else f"its door does not answer ({said.why})"


def rounds(pairs: tuple[tuple[Engine, Engine], ...]) -> list[list[tuple[Engine, Engine]]]:
    """Put pairs into rounds in which no engine stands twice: two checks at once would fill each other's KV pool."""
    found: list[list[tuple[Engine, Engine]]] = []
    for pair in pairs:
        names = {engine.name for engine in pair}
        for one in found:
            if names.isdisjoint(engine.name for other in one for engine in other):
                one.append(pair)
                break
        else:
            found.append([pair])
    return found


def _front(router: PodFacts, step: ProveFronts, subject: Subject) -> front_door.Front:
    host = bracketed(router.ip or "")
    return front_door.Front(
        name=f"the front of pod {router.name}",
        url=f"http://{host}:{USERS_PORT}",
        observe_url=f"http://{host}:{OPERATOR_PORT}",
        model=subject.served_name,
        cap=step.cap,
        workers=frozenset(worker_url(engine) for engine in step.engines),
    )


def _pair(prefill: Engine, decode: Engine) -> Pair:
    return Pair(worker_url(prefill), worker_url(decode), prefill.pod.ip or "", prefill.bootstrap_port)


def _limits(prefill: Engine, decode: Engine, cap: int, subject: Subject) -> pair_suite.Limits:
    sizes = [[pool for pool in pools_of(engine) if isinstance(pool, Measured)] for engine in (prefill, decode)]
    smallest = [min(pools, key=lambda pool: pool.kv_pool_tokens) for pools in sizes]
    return pair_suite.Limits(
        cap=cap,
        requested_tokens=subject.requested_tokens,
        prefill_pool=smallest[0].kv_pool_tokens,
        decode_pool=smallest[1].kv_pool_tokens,
        page_size=smallest[0].page_size,
    )
