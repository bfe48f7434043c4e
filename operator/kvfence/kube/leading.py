"""One operator at a time works: the one that holds the Lease.

The package's leader election judges who may hold a Lease. Around that stands what it lacks, each seen in its source or
on the real API server (kubernetes 37.0.2):

- its LeaseLock writes local time and calls it UTC, and cannot renew a Lease with a time at a full second;
- it lets an error of the network end the election with the work running on; here that is a failed attempt;
- a request may take five minutes, in which it goes on leading; here the deadline holds, by a clock that nobody sets;
- a clock that is set forward makes another's Lease look as if it had run out; here it must stand still for its time;
- it takes a Lease at once that lacks one of its fields, also from a holder;
- work that ends or fails is not noticed, and work that is cancelled is not waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.leaderelection.electionconfig import Config
from kubernetes.aio.leaderelection.leaderelection import LeaderElection
from kubernetes.aio.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.aio.leaderelection.resourcelock.baselock import BaseLock

from kvfence.kube.errors import KubernetesError
from kvfence.kube.kinds import LEASE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from kvfence.kube.client import Kubernetes

LEASE_SECONDS = 15
"""How long others wait after the last renewal that they saw. The figures are client-go's."""

RENEW_SECONDS = 10
"""How long a leader tries to renew before it stops working: less, so that there are never two."""

RETRY_SECONDS = 2
"""Between attempts to get or to renew."""

STOP_SECONDS = 4.0
"""How long cancelled work may take. With RENEW_SECONDS less than LEASE_SECONDS."""

log = logging.getLogger(__name__)


class LostLease(Exception):  # noqa: N818 - what happened, not what is wrong
    """Another may be leading now: the process ends, and starts again as a candidate."""


async def lead(
    kubernetes: Kubernetes, namespace: str, name: str, identity: str, work: Callable[[], Awaitable[None]]
) -> None:
    """Wait for the Lease, work while it is held, and return when the work has ended.

    What the work raises is raised. When this is cancelled, the work is cancelled and waited for, and the Lease is given
    up, so that the next one need not wait for it to run out.

    Args:
        kubernetes: where.
        namespace: of the Lease.
        name: of the Lease.
        identity: who we are: the pod's name, so that a container that starts again in place goes on at once.
        work: what the leader does.

    Raises:
        LostLease: the Lease could not be renewed in time. The work has been cancelled.
    """
    lock = _Lock(kubernetes, namespace, name, identity)
    election = LeaderElection(
        Config(lock, LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS, _nothing, onstopped_leading=_nothing)
    )
    held = await _acquire(election)
    log.info("%s leads: it holds the Lease %s/%s", identity, namespace, name)
    working = asyncio.ensure_future(work())
    renewing = asyncio.ensure_future(_renew(election, held))
    lost = False
    try:
        await asyncio.wait((working, renewing), return_when=asyncio.FIRST_COMPLETED)
        lost = not working.done()
    finally:
        ended = await _stop(working, renewing)
        if ended and not lost:
            await lock.release()
    if lost:
        words = f"the Lease {namespace}/{name} was not renewed for {RENEW_SECONDS} s, or another holds it"
        raise LostLease(words) from renewing.exception()
    working.result()


async def _acquire(election: LeaderElection) -> float:
    """Return when the request was sent that got the Lease, by the monotonic clock."""
    while True:
        began = time.monotonic()
        if await _attempt(election):
            return began
        await asyncio.sleep(RETRY_SECONDS)


async def _renew(election: LeaderElection, held: float) -> None:
    """Renew until that fails for too long or another is seen to hold the Lease."""
    while True:
        await asyncio.sleep(min(RETRY_SECONDS, max(0.0, held + RENEW_SECONDS - time.monotonic())))
        began = time.monotonic()
        left = held + RENEW_SECONDS - began
        if left <= 0:
            return
        renewed = False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left):
                renewed = await _attempt(election)
        if renewed:
            held = began
        elif _taken(election):
            return


async def _attempt(election: LeaderElection) -> bool:
    return bool(await election.try_acquire_or_renew())


def _taken(election: LeaderElection) -> bool:
    seen = election.observed_record
    return seen is not None and seen.holder_identity != election.election_config.lock.identity


async def _stop(working: asyncio.Future[None], renewing: asyncio.Future[None]) -> bool:
    """Cancel what still runs and wait for it; whether the work has ended."""
    cancelled = working.cancel()
    renewing.cancel()
    done, _ = await asyncio.wait((working, renewing), timeout=STOP_SECONDS)
    if working not in done:
        log.error("the work does not end in %.0f s after it was cancelled; the process must end now", STOP_SECONDS)
    elif cancelled and not working.cancelled() and (error := working.exception()):
        log.error("the work failed when it was cancelled: %s: %s", type(error).__name__, error)
    return working in done


async def _nothing() -> None:
    """What the package's own loop would call; that loop is not used."""


class _Lock(BaseLock):
    """A Lease for the package's election. Requests are short, and one that fails is a failed attempt."""

    def __init__(self, kubernetes: Kubernetes, namespace: str, name: str, identity: str) -> None:
        super().__init__(name, namespace, identity)
        self._kubernetes = kubernetes
        self._lease: dict[str, Any] = {}
        self._since = 0.0  # when the Lease was first seen as it is, by the monotonic clock

    async def get(self, name: str, namespace: str) -> tuple[bool, LeaderElectionRecord] | tuple[bool, Exception]:
        """Return the record of the Lease; an error with the code 404 in its body has the package make one."""
        try:
            async with asyncio.timeout(RENEW_SECONDS / 2):
                lease = await self._kubernetes.get(LEASE, namespace, name)
        except _FAILED as error:
            return False, ApiException(status=0, reason=_words(error))
        if lease is None:
            return False, ApiException(status=404, reason="Not Found", body='{"code": 404}')
        if _spec(lease) != _spec(self._lease) or not self._since:
            self._since = time.monotonic()
        self._lease = lease
        spec = _spec(lease)
        duration = spec.get("leaseDurationSeconds")
        return True, LeaderElectionRecord(
            spec.get("holderIdentity"), str(duration), spec.get("acquireTime"), spec.get("renewTime")
        )

    # The records that the package hands over have times without a time zone: who and when is written here instead.

    async def create(self, name: str, namespace: str, election_record: LeaderElectionRecord) -> bool:  # noqa: ARG002
        """Make the Lease, ours."""
        meta = {"name": name, "namespace": namespace}
        lease = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": meta, "spec": self._ours({})}
        return await self._written(self._kubernetes.create(lease))

    async def update(self, name: str, namespace: str, updated_record: LeaderElectionRecord) -> bool:  # noqa: ARG002
        """Make the Lease that was last seen ours, unless another's time has not passed since."""
        spec = _spec(self._lease)
        holder = spec.get("holderIdentity")
        if holder and holder != self.identity and time.monotonic() < self._since + LEASE_SECONDS:
            return False
        return await self._written(self._kubernetes.replace(self._lease | {"spec": self._ours(spec)}))

    async def release(self) -> None:
        """Give the Lease up if it is ours; when that fails it runs out by itself."""
        await self.get(self.name, self.namespace)
        spec = _spec(self._lease)
        if spec.get("holderIdentity") == self.identity:
            left = {key: value for key, value in spec.items() if key != "holderIdentity"}
            await self._written(self._kubernetes.replace(self._lease | {"spec": left}))

    def _ours(self, before: dict[str, Any]) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")  # the API server wants all six digits
        mine = before.get("holderIdentity") == self.identity
        return before | {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": LEASE_SECONDS,
            "acquireTime": (before.get("acquireTime") if mine else None) or now,
            "renewTime": now,
            "leaseTransitions": (before.get("leaseTransitions") or 0) + (0 if mine or not before else 1),
        }

    async def _written(self, request: Coroutine[Any, Any, object]) -> bool:
        try:
            async with asyncio.timeout(RENEW_SECONDS / 2):
                return await request is not None
        except _FAILED as error:
            log.warning("the Lease %s/%s was not written: %s", self.namespace, self.name, _words(error))
            return False


_FAILED = (KubernetesError, TimeoutError)


def _words(error: Exception) -> str:
    return str(error) or "no answer from the API server in time"


def _spec(lease: dict[str, Any]) -> dict[str, Any]:
    spec = lease.get("spec")
    return spec if isinstance(spec, dict) else {}
