"""Whoever lost the Lease has stopped working when it says so, and not when its process ends some time later."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest
from kubernetes.aio.leaderelection.electionconfig import Config

from kvfence.kube import leading
from kvfence.kube.leading import LostLease, lead
from tests.unit.kube.test_leading import Leases

if TYPE_CHECKING:
    from kvfence.kube.client import Kubernetes


def test_the_work_of_a_leader_that_lost_its_lease_is_over_when_that_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leading, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(leading, "STOP_SECONDS", 0.2)
    monkeypatch.setattr(
        leading, "Config", lambda lock, *_more, **_named: Config(lock, 15, 10, 2, *[leading._nothing] * 2)
    )
    leases = Leases()
    stopped = asyncio.Event()

    async def work() -> None:
        leases.spec["holderIdentity"] = "thief"
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async def story() -> bool:
        with pytest.raises(LostLease):
            await lead(cast("Kubernetes", leases), "n", "l", "a", work)
        return stopped.is_set()

    assert asyncio.run(story())
