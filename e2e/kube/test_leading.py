"""One leader at a time, on the real API server; the times are shortened where waiting them out would show no more."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from e2e.cluster.stage import Stage
from e2e.kube.conftest import Asked
from kvfence.kube import leading
from kvfence.kube.client import Kubernetes
from kvfence.kube.leading import LostLease, lead

NAME = "kvfence-operator"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lease and deadlines a third as long."""
    for name, seconds in {"LEASE_SECONDS": 5, "RENEW_SECONDS": 3, "RETRY_SECONDS": 1, "STOP_SECONDS": 1.0}.items():
        monkeypatch.setattr(leading, name, seconds)


class Work:
    """Work that says when it began and how it ended."""

    def __init__(self, does: Callable[[], Any] | None = None) -> None:
        self.began = asyncio.Event()
        self.cancelled = False
        self._does = does

    async def __call__(self) -> None:
        self.began.set()
        try:
            if self._does is None:
                await asyncio.Event().wait()
            else:
                self._does()
        except asyncio.CancelledError:
            self.cancelled = True
            raise


class Wire:
    """The way to the API server, which can be cut and can fall silent."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._open: set[asyncio.StreamWriter] = set()
        self.passes = asyncio.Event()
        self.passes.set()
        self.refuses = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuses:
            writer.close()
            return
        there, back = await asyncio.open_connection(*self._target)
        self._open |= {writer, back}
        await asyncio.gather(self._carry(reader, back), self._carry(there, writer))

    async def _carry(self, source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                await self.passes.wait()
                to.write(data)
        except OSError:
            pass
        finally:
            to.close()

    def cut(self) -> None:
        self.refuses = True
        for one in self._open:
            one.close()


@asynccontextmanager
async def wired(api: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Wire, Kubernetes]]:
    admin = json.loads(api.kubectl.run("config", "view", "--raw", "--flatten", "--output", "json"))
    cluster = admin["clusters"][0]["cluster"]
    there = urlsplit(cluster["server"])
    assert there.hostname is not None
    wire = Wire((there.hostname, there.port or 443))
    server = await asyncio.start_server(wire.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    cluster |= {"server": f"https://127.0.0.1:{port}", "tls-server-name": there.hostname}
    (tmp_path / "wired").write_text(json.dumps(admin))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "wired"))
    async with await Kubernetes.connect() as kubernetes:
        yield wire, kubernetes
    wire.passes.set()
    wire.cut()
    server.close()


def lease(api: Stage, namespace: str) -> dict[str, Any]:
    spec: dict[str, Any] = api.kubectl.get("lease", NAME, "--namespace", namespace)["spec"]
    return spec


async def waited(event: asyncio.Event, seconds: float) -> float:
    began = time.monotonic()
    await asyncio.wait_for(event.wait(), seconds)
    return time.monotonic() - began


async def ended(leader: asyncio.Task[None]) -> None:
    leader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leader


def test_the_lease_says_who_and_when_in_utc_whatever_the_time_zone_here(
    asked: Asked, api: Stage, api_namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()

    async def story(kubernetes: Kubernetes) -> None:
        work = Work()
        leader = asyncio.create_task(lead(kubernetes, api_namespace, NAME, "pod-a", work))
        await waited(work.began, 3)
        await asyncio.sleep(leading.RETRY_SECONDS + 1)  # renewed once
        spec = await asyncio.to_thread(lease, api, api_namespace)
        await ended(leader)
        assert spec["holderIdentity"] == "pod-a"
        assert spec["leaseDurationSeconds"] == 15
        renewed = datetime.fromisoformat(spec["renewTime"])
        acquired = datetime.fromisoformat(spec["acquireTime"])
        assert 0 <= (datetime.now(UTC) - renewed).total_seconds() < 5
        assert 1 < (renewed - acquired).total_seconds() < 5
        assert work.cancelled

    try:
        asked(story)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert "holderIdentity" not in lease(api, api_namespace)  # given up


def test_the_next_one_waits_and_takes_over_at_once_when_the_lease_is_given_up(
    asked: Asked, api: Stage, api_namespace: str
) -> None:
    async def story(kubernetes: Kubernetes) -> None:
        first, second = Work(), Work()
        leader = asyncio.create_task(lead(kubernetes, api_namespace, NAME, "pod-a", first))
        await waited(first.began, 3)
        follower = asyncio.create_task(lead(kubernetes, api_namespace, NAME, "pod-b", second))
        await asyncio.sleep(5)
        assert not second.began.is_set()
        await ended(leader)
        assert await waited(second.began, 4) < leading.RETRY_SECONDS + 1
        assert lease(api, api_namespace)["leaseTransitions"] == 1
        await ended(follower)

    asked(story)


@pytest.mark.usefixtures("quick")
def test_the_next_one_takes_over_a_lease_that_ran_out_and_not_before(
    asked: Asked, api: Stage, api_namespace: str
) -> None:
    async def story(kubernetes: Kubernetes) -> None:
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        spec = {"holderIdentity": "dead", "leaseDurationSeconds": 5, "acquireTime": now, "renewTime": now}
        meta = {"name": NAME, "namespace": api_namespace}
        api.kubectl.apply([{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}])
        work = Work()
        leader = asyncio.create_task(lead(kubernetes, api_namespace, NAME, "pod-b", work))
        assert leading.LEASE_SECONDS <= await waited(work.began, 9) < leading.LEASE_SECONDS + 2
        await ended(leader)

    asked(story)


def test_a_holder_that_restarts_goes_on_at_once(asked: Asked, api: Stage, api_namespace: str) -> None:
    async def story(kubernetes: Kubernetes) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", ".000000Z")
        spec = {"holderIdentity": "pod-a", "leaseDurationSeconds": 15, "acquireTime": now, "renewTime": now}
        meta = {"name": NAME, "namespace": api_namespace}
        api.kubectl.apply([{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}])
        work = Work()
        leader = asyncio.create_task(lead(kubernetes, api_namespace, NAME, "pod-a", work))
        assert await waited(work.began, 3) < 1
        assert lease(api, api_namespace)["acquireTime"] == now
        await ended(leader)

    asked(story)


def test_a_lease_that_another_took_ends_the_work(asked: Asked, api: Stage, api_namespace: str) -> None:
    async def story(kubernetes: Kubernetes) -> None:
        work = Work()
        leader = asyncio.create_task(lead(kubernetes, api_namespace, NAME, "pod-a", work))
        await waited(work.began, 3)
        taken = '{"spec":{"holderIdentity":"thief"}}'
        await asyncio.to_thread(
            api.kubectl.run, "patch", "lease", NAME, "-n", api_namespace, "--type=merge", "-p", taken
        )
        began = time.monotonic()
        with pytest.raises(LostLease, match="another holds it"):
            await leader
        assert time.monotonic() - began < leading.RETRY_SECONDS * 2 + 1
        assert work.cancelled
        assert lease(api, api_namespace)["holderIdentity"] == "thief"

    asked(story)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("silent", [False, True], ids=["cut", "silent"])
def test_without_the_api_server_the_work_ends_before_the_lease_runs_out(
    silent: bool, api: Stage, api_namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with wired(api, tmp_path, monkeypatch) as (wire, kubernetes):
            work = Work()
            leader = asyncio.create_task(lead(kubernetes, api_namespace, NAME, "pod-a", work))
            await waited(work.began, 3)
            began = time.monotonic()
            if silent:
                wire.passes.clear()
            else:
                wire.cut()
            with pytest.raises(LostLease):
                await leader
            took = time.monotonic() - began
            print(f"the work ended after {took:.2f} s")
            assert leading.RENEW_SECONDS - leading.RETRY_SECONDS - 0.5 < took < leading.LEASE_SECONDS - 1
            assert work.cancelled

    asyncio.run(story())


@pytest.mark.usefixtures("quick")
def test_a_short_break_of_the_connection_does_not_end_the_work(
    api: Stage, api_namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with wired(api, tmp_path, monkeypatch) as (wire, kubernetes):
            work = Work()
            leader = asyncio.create_task(lead(kubernetes, api_namespace, NAME, "pod-a", work))
            await waited(work.began, 3)
            wire.cut()
            await asyncio.sleep(1.5)
            wire.refuses = False
            await asyncio.sleep(leading.LEASE_SECONDS)
            assert not leader.done()
            await ended(leader)

    asyncio.run(story())


def fail() -> None:
    raise RuntimeError("the work failed")


def test_work_that_ends_or_fails_ends_the_leading_and_gives_the_lease_up(
    asked: Asked, api: Stage, api_namespace: str
) -> None:
    async def story(kubernetes: Kubernetes) -> None:
        await asyncio.wait_for(lead(kubernetes, api_namespace, NAME, "pod-a", Work(lambda: None)), 3)
        with pytest.raises(RuntimeError, match="the work failed"):
            await asyncio.wait_for(lead(kubernetes, api_namespace, NAME, "pod-b", Work(fail)), 3)
        assert "holderIdentity" not in lease(api, api_namespace)

    asked(story)
