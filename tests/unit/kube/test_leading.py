from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from kubernetes.aio.leaderelection.electionconfig import Config
from kubernetes.aio.leaderelection.leaderelection import LeaderElection

from kvfence.kube import leading
from kvfence.kube.client import Kubernetes
from kvfence.kube.errors import Conflict, Unreachable
from kvfence.kube.kinds import LEASE, Kind
from kvfence.kube.leading import LostLease, lead

Object = dict[str, Any]


class Leases:
    """One Lease, as the API server keeps it. Held against the real one by e2e/kube/test_leading.py."""

    def __init__(self, spec: Object | None = None) -> None:
        self.lease: Object | None = None
        self.away = False
        if spec is not None:
            self.lease = {"metadata": {"name": "l", "namespace": "n", "resourceVersion": 0}, "spec": spec}

    async def get(self, kind: Kind, _namespace: str, _name: str) -> Object | None:
        assert kind is LEASE
        self._reached()
        return copy.deepcopy(self.lease)

    async def create(self, obj: Object) -> Object | None:
        self._reached()
        if self.lease is not None:
            return None
        self.lease = copy.deepcopy(obj)
        self.lease["metadata"]["resourceVersion"] = 0
        return obj

    async def replace(self, obj: Object) -> Object:
        self._reached()
        assert self.lease is not None
        if obj["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise Conflict(409, "Conflict", "changed meanwhile")
        self.lease = copy.deepcopy(obj)
        self.lease["metadata"]["resourceVersion"] += 1
        return obj

    @property
    def spec(self) -> Object:
        assert self.lease is not None
        spec: Object = self.lease["spec"]
        return spec

    def _reached(self) -> None:
        if self.away:
            raise Unreachable(None, "Unreachable", "no answer")


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic clock and the wall clock, as `leading` and the package see them."""
    clocks = [1000.0, 1e9]

    class Clock:
        monotonic = staticmethod(lambda: clocks[0])
        time = staticmethod(lambda: clocks[1])

    monkeypatch.setattr(leading, "time", Clock)
    monkeypatch.setattr("kubernetes.aio.leaderelection.leaderelection.time", Clock)
    return clocks


def election(leases: Leases, identity: str) -> LeaderElection:
    lock = leading._Lock(cast("Kubernetes", leases), "n", "l", identity)
    return LeaderElection(Config(lock, 15, 10, 2, leading._nothing, onstopped_leading=leading._nothing))


def held(by: str, **more: Any) -> Object:
    times = {"acquireTime": "2026-11-30T00:00:00.000000Z", "renewTime": "2026-11-30T00:00:00.000000Z"}
    return {"holderIdentity": by, "leaseDurationSeconds": 15} | times | more


def attempts(leases: Leases, identity: str, *between: Callable[[], object]) -> list[bool]:
    async def story() -> list[bool]:
        candidate = election(leases, identity)
        got = [await candidate.try_acquire_or_renew()]
        for change in between:
            change()
            got.append(await candidate.try_acquire_or_renew())
        return got

    return asyncio.run(story())


def test_a_lease_that_is_not_there_is_made_with_times_in_utc() -> None:
    leases = Leases()
    assert attempts(leases, "a") == [True]
    assert leases.spec["holderIdentity"] == "a"
    renewed = datetime.fromisoformat(leases.spec["renewTime"])
    assert renewed.tzinfo is not None
    assert abs((datetime.now(UTC) - renewed).total_seconds()) < 5


def test_another_s_lease_is_taken_when_it_stood_still_for_its_time_and_not_before(now: list[float]) -> None:
    leases = Leases(held("b"))

    def later(seconds: float) -> Callable[[], None]:
        def change() -> None:
            now[0] += seconds
            now[1] += seconds

        return change

    assert attempts(leases, "a", later(14), later(2)) == [False, False, True]
    assert leases.spec["leaseTransitions"] == 1
    assert leases.spec["acquireTime"] == leases.spec["renewTime"]


def test_a_wall_clock_that_is_set_forward_takes_no_lease(now: list[float]) -> None:
    leases = Leases(held("b"))

    def set_forward() -> None:
        now[1] += 3600

    assert attempts(leases, "a", set_forward, set_forward) == [False, False, False]
    assert leases.spec["holderIdentity"] == "b"


@pytest.mark.parametrize("gone", ["acquireTime", "renewTime", "leaseDurationSeconds"])
def test_another_s_lease_that_lacks_a_field_is_not_taken_at_once(gone: str) -> None:
    leases = Leases(held("b", **{gone: None}))
    assert attempts(leases, "a", lambda: None) == [False, False]


def test_a_lease_that_was_given_up_is_taken_at_once() -> None:
    leases = Leases({"leaseDurationSeconds": 15})
    assert attempts(leases, "a") == [True]


def test_the_same_identity_goes_on_at_once_and_keeps_since_when() -> None:
    leases = Leases(held("a"))
    assert attempts(leases, "a") == [True]
    assert leases.spec["acquireTime"] == "2026-11-30T00:00:00.000000Z"
    assert leases.spec["leaseTransitions"] == 0


def test_no_answer_is_a_failed_attempt_and_no_end_of_the_election() -> None:
    leases = Leases(held("a"))
    leases.away = True

    def back() -> None:
        leases.away = False

    assert attempts(leases, "a", back) == [False, True]


@pytest.mark.parametrize("lease", [{}, {"spec": None}, {"spec": []}])
def test_a_lease_without_a_spec_is_taken(lease: Object) -> None:
    leases = Leases({})
    assert leases.lease is not None
    del leases.lease["spec"]
    leases.lease |= lease
    assert attempts(leases, "a") == [True]


def led(leases: Leases, work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(lead(cast("Kubernetes", leases), "n", "l", "a", work))


def test_work_that_ends_returns_and_gives_the_lease_up() -> None:
    leases = Leases()

    async def work() -> None:
        assert leases.spec["holderIdentity"] == "a"

    led(leases, work)
    assert "holderIdentity" not in leases.spec


def test_work_that_fails_is_not_swallowed() -> None:
    async def work() -> None:
        raise ZeroDivisionError

    leases = Leases()
    with pytest.raises(ZeroDivisionError):
        led(leases, work)
    assert "holderIdentity" not in leases.spec


def test_a_lost_lease_cancels_the_work_and_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leading, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(
        leading, "Config", lambda lock, *_more, **_named: Config(lock, 15, 10, 2, *[leading._nothing] * 2)
    )
    leases, cancelled = Leases(), []

    async def work() -> None:
        leases.spec["holderIdentity"] = "thief"
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    began = time.monotonic()
    with pytest.raises(LostLease):
        led(leases, work)
    assert time.monotonic() - began < leading.RENEW_SECONDS / 2  # and not only when the deadline has passed
    assert cancelled == [True]
    assert leases.spec["holderIdentity"] == "thief"


def test_work_that_does_not_end_keeps_the_lease(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(leading, "STOP_SECONDS", 0.01)
    leases = Leases()

    async def story() -> None:
        free, began = asyncio.Event(), asyncio.Event()

        async def work() -> None:
            began.set()
            try:
                await free.wait()
            except asyncio.CancelledError:
                await free.wait()

        leader = asyncio.create_task(lead(cast("Kubernetes", leases), "n", "l", "a", work))
        await began.wait()
        leader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leader
        assert leases.spec["holderIdentity"] == "a"
        free.set()
        await asyncio.sleep(0)

    asyncio.run(story())
    assert "the process must end now" in caplog.text
