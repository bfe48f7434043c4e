"""One look at one pool, from beginning to end: gather, decide, apply, start what takes time, report."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kvfence.controller import objects, pool_objects, reporting
from kvfence.controller.jobs import Subject
from kvfence.controller.memory import PoolMemory, is_open_question
from kvfence.controller.metrics import JOBS
from kvfence.domain.decisions import ProveFronts, ProvePairs, decide
from kvfence.domain.page_defences import enforced
from kvfence.domain.reporting import pool_status
from kvfence.domain.roles_ready import answers
from kvfence.kube.errors import NamespaceTerminating

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvfence.controller.cuts import Cuts
    from kvfence.controller.gathering import Gathered, Gatherer
    from kvfence.controller.jobs import Jobs
    from kvfence.controller.keys import Keys
    from kvfence.controller.pool_objects import PoolObjects
    from kvfence.controller.queue import Key
    from kvfence.domain.decisions import Decision, Step
    from kvfence.domain.observed import Observed
    from kvfence.kube.client import Kubernetes
    from kvfence.render.settings import Installation

log = logging.getLogger(__name__)


@dataclass
class Reconciler:
    """Looks after all pools; `reconcile` is the work of the queue.

    Attributes:
        kubernetes: the API server.
        gatherer: asks engines.
        jobs: does what takes time.
        installation: what the operator was installed with.
        keys: for admissions.
        cuts: which pools stand cut for an advisory.
        wake: has a pool looked at again; called when a job of it is done.
    """

    kubernetes: Kubernetes
    gatherer: Gatherer
    jobs: Jobs
    installation: Installation
    keys: Keys
    cuts: Cuts
    wake: Callable[[Key], None]
    _memories: dict[Key, PoolMemory] = field(default_factory=dict)

    async def reconcile(self, key: Key) -> float | None:
        """Look at one pool.

        Returns:
            After how many seconds to look again although nothing happens; none when an event will tell.

        Raises:
            KubernetesError: the API server did not answer, or not so; the queue tries again.
        """
        try:
            pool = await pool_objects.read(self.kubernetes, key)
            if pool is None:
                self.cuts.forget(key)
                self._forget(key)
                return None
            return await self._reconcile(key, pool)
        except pool_objects.PoolUnreadableError as error:
            await reporting.report_unreadable(self.kubernetes, key, str(error))
            return None
        except NamespaceTerminating:
            log.info("Namespace %s is being deleted, and pool %s with it", *key)
            return None

    async def _reconcile(self, key: Key, pool: PoolObjects) -> float | None:
        memory = self._memory(key, pool.identity.uid)
        if not memory.is_busy():
            memory.try_again_when_due()
        gathered = await self.gatherer.gather(pool, memory)
        is_cut = self.cuts.judge(key, gathered.observed)
        gathered = replace(gathered, observed=replace(gathered.observed, is_cut=is_cut))
        decision = decide(gathered.observed)
        want = objects.wanted(pool, gathered, decision, self.installation, self.keys.public)
        left = await objects.bring_about(self.kubernetes, pool, want, gathered.observed.revision)
        observed = replace(gathered.observed, taken=left.taken, refused=left.refused)
        # Nothing is proven or opened anew without, say, its NetworkPolicy; what serves is looked after all the same.
        is_held_up = bool(left.taken or (left.refused and not observed.serving))
        if decision.step is not None and not is_held_up and not memory.is_busy():
            self._start(key, decision.step, _subject(pool, gathered), memory)
        status = pool_status(observed, decision, pool.generation, datetime.now(UTC).replace(microsecond=0))
        await reporting.report(self.kubernetes, pool, status)
        return memory.retry_after(unsettled=_is_unsettled(observed, decision, busy=memory.is_busy()))

    def _start(self, key: Key, step: Step, subject: Subject, memory: PoolMemory) -> None:
        """Begin a step, unless it is the one that was done last: that had no effect, and is tried again when due."""
        if not memory.begin(*_signature(step, subject)):
            return
        JOBS.labels(type(step).__name__).inc()

        async def job() -> None:
            try:
                await self.jobs.do(step, subject, memory)
            except Exception:
                log.exception("Step %s of pool %s/%s failed; it is tried again", type(step).__name__, *key)
            finally:
                memory.job = None
                self.wake(key)

        memory.job = asyncio.create_task(job(), name=f"{type(step).__name__} of {'/'.join(key)}")

    async def stop(self) -> None:
        """End what takes time, and wait for it: from then on no door is told anything."""
        jobs = [memory.job for memory in self._memories.values() if memory.job is not None]
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)

    def _memory(self, key: Key, uid: str) -> PoolMemory:
        memory = self._memories.get(key)
        if memory is not None and memory.uid != uid:  # another pool of that name
            self.cuts.forget(key)
        if memory is None or memory.uid != uid:
            self._forget(key)
            memory = self._memories[key] = PoolMemory(uid)
        return memory

    def _forget(self, key: Key) -> None:
        memory = self._memories.pop(key, None)
        if memory is not None and memory.job is not None:
            memory.job.cancel()


def _subject(pool: PoolObjects, gathered: Gathered) -> Subject:
    return Subject(
        uid=pool.identity.uid,
        revision=gathered.observed.revision,
        served_name=gathered.served_name,
        requested_tokens=gathered.frozen.start_tokens,
        peers=gathered.observed.peers,
        enforced=enforced(gathered.observed),
        partners={one.pod.uid: gathered.observed.partners_of(one) for one in gathered.observed.engines},
    )


def _signature(step: Step, subject: Subject) -> tuple[object, object]:
    """What a step is about, without what doing it changes; and of which boots."""
    engines = [engine for pair in step.pairs for engine in pair] if isinstance(step, ProvePairs) else step.engines
    boots = tuple(engine.boot.nonces for engine in engines if engine.boot is not None)
    pods = tuple(engine.pod.uid for engine in engines)
    if isinstance(step, ProveFronts):
        pods += tuple(router.uid for router in step.routers)
    partners = tuple(subject.partners.get(uid, ()) for uid in pods)  # their keys are of boots too
    return (type(step), step.cap, pods, subject.peers, subject.revision), (boots, partners)


def _is_unsettled(observed: Observed, decision: Decision, *, busy: bool) -> bool:
    """Whether something is to be tried again although no event will tell."""
    if busy:  # its end tells
        return False
    silent = any(engine.pod.started and not answers(engine) for engine in observed.engines)
    known = observed.known
    open_question = any(is_open_question(said) for said in (*map(known.said, known.proofs), known.fronts))
    waits = silent or open_question or bool(known.refusals or observed.taken or observed.refused)
    return waits or decision.step is not None
