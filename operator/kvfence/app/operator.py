"""Puts the operator together and runs it until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import time
from typing import TYPE_CHECKING, Any, cast

import kopf

from kvfence.app import watching
from kvfence.app.serving import Health, serving
from kvfence.controller.cuts import Cuts
from kvfence.controller.gathering import Gatherer
from kvfence.controller.jobs import Jobs
from kvfence.controller.keys import signing_keys
from kvfence.controller.metrics import (
    LEADING,
    QUEUE_LENGTH,
    RECONCILE_SECONDS,
    RECONCILES,
    REGISTRY,
    RESYNCS,
    ApiWrites,
)
from kvfence.controller.pool_objects import key_of
from kvfence.controller.queue import Priority, WorkQueue
from kvfence.controller.reconciling import Reconciler
from kvfence.controller.watchlists import Watchlists
from kvfence.engine import server_info
from kvfence.engine.door import DoorClient
from kvfence.engine.web import Web
from kvfence.kube.client import Kubernetes
from kvfence.kube.errors import KubernetesError
from kvfence.kube.kinds import POOL
from kvfence.kube.leading import lead

if TYPE_CHECKING:
    from kvfence.app.settings import Settings
    from kvfence.controller.pool_objects import Object
    from kvfence.controller.queue import Key

LEASE = "kvfence-operator"

ADVISORIES_SECONDS = 30.0
"""Between two looks at the file with added advisories; the kubelet takes up to a minute to bring a new one."""

log = logging.getLogger(__name__)


async def run(settings: Settings) -> None:
    """Serve probes and metrics, wait for the Lease, and look after pools while it is held.

    Raises:
        LostLease: another operator may be leading now.
        KubernetesError, KeyUnusableError: it cannot begin; the message says why.
    """
    health = Health()
    async with serving(health), await Kubernetes.connect() as kubernetes:
        REGISTRY.register(ApiWrites(lambda: kubernetes.writes))
        _end_on_signals()
        health.ready = True

        async def work() -> None:
            LEADING.set(1)
            await _work(settings, kubernetes)

        await lead(kubernetes, settings.namespace, LEASE, settings.pod_name, work)


def _end_on_signals() -> None:
    """End on SIGTERM also before kopf runs, which has its own way: for the first process of a container nobody does."""
    this = asyncio.current_task()
    assert this is not None
    loop = asyncio.get_running_loop()
    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, this.cancel)


async def _work(settings: Settings, kubernetes: Kubernetes) -> None:
    keys = await signing_keys(kubernetes, settings.namespace)
    watchlists = Watchlists(settings.advisories.file, settings.advisories.public_keys)
    cuts = Cuts(settings.advisories.cuts)
    cuts.begin(await _pools(settings, kubernetes))
    async with DoorClient() as doors, Web(server_info.SECONDS) as web:
        reconciler = Reconciler(
            kubernetes=kubernetes,
            gatherer=Gatherer(doors, web, settings.installation, settings.floors, watchlists),
            jobs=Jobs(doors, keys.signer),
            installation=settings.installation,
            keys=keys,
            cuts=cuts,
            wake=lambda key: queue.add(key),  # noqa: PLW0108 - the queue is made below
        )

        async def reconcile(key: Key) -> float | None:
            began = time.monotonic()
            try:
                after = await reconciler.reconcile(key)
            except Exception:
                RECONCILES.labels("error").inc()
                raise
            finally:
                RECONCILE_SECONDS.observe(time.monotonic() - began)
            RECONCILES.labels("done").inc()
            return after

        queue = WorkQueue(reconcile, settings.concurrent_reconciles, random.Random())  # noqa: S311 - spreads retries
        QUEUE_LENGTH.set_function(lambda: len(queue))
        tasks = [
            asyncio.create_task(queue.run(), name="work queue"),
            asyncio.create_task(_resync(settings, kubernetes, queue, cuts), name="resync"),
            asyncio.create_task(_watch(settings, queue), name="watch"),
        ]
        if watchlists.file is not None:
            following = _follow(watchlists, settings, kubernetes, queue)
            tasks.append(asyncio.create_task(following, name="advisories"))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)  # what one of them raised is raised above
            await reconciler.stop()


async def _watch(settings: Settings, queue: WorkQueue) -> None:
    await kopf.operator(
        registry=watching.registry(queue.add),
        settings=watching.settings(),
        standalone=True,
        identity=cast("Any", settings.pod_name),  # else kopf looks up a user, and a container's has no entry anywhere
        clusterwide=not settings.watch_namespaces,
        namespaces=settings.watch_namespaces,
    )


async def _resync(settings: Settings, kubernetes: Kubernetes, queue: WorkQueue, cuts: Cuts) -> None:
    """Have every pool looked at now and then, after what has changed: what a watch missed is found so."""
    while True:
        await asyncio.sleep(settings.resync_seconds * random.uniform(0.8, 1.2))  # noqa: S311
        try:
            cuts.keep(await _look_at_all(settings, kubernetes, queue))
        except KubernetesError as error:  # events come in all the same, and the Lease tells when nothing gets through
            log.warning("Not every pool can be looked at now; the next round is in some minutes: %s", error)
            continue
        RESYNCS.inc()


async def _follow(watchlists: Watchlists, settings: Settings, kubernetes: Kubernetes, queue: WorkQueue) -> None:
    """Have every pool looked at when other advisories count than before."""
    pending = False
    while True:
        await asyncio.sleep(ADVISORIES_SECONDS)
        pending = await asyncio.to_thread(watchlists.refresh) or pending
        if not pending:
            continue
        try:
            await _look_at_all(settings, kubernetes, queue)
            pending = False
        except KubernetesError as error:
            log.warning("Other advisories count now, and pools cannot be looked at yet: %s", error)


async def _look_at_all(settings: Settings, kubernetes: Kubernetes, queue: WorkQueue) -> list[Object]:
    """Have every pool looked at; return them."""
    pools = await _pools(settings, kubernetes)
    for pool in pools:
        queue.add(key_of(pool), Priority.RESYNC)
    return pools


async def _pools(settings: Settings, kubernetes: Kubernetes) -> list[Object]:
    return [
        pool for namespace in settings.watch_namespaces or (None,) for pool in await kubernetes.list(POOL, namespace)
    ]
