"""What tests of the operator's API client share: the client on the real API server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from e2e.cluster.stage import Stage
from kvfence.kube.client import Kubernetes

Asked = Callable[[Callable[[Kubernetes], Awaitable[Any]]], Any]


@pytest.fixture
def asked(api: Stage, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Call it with what to do with a client: does it, in an event loop of its own, and returns what came of it."""
    monkeypatch.setenv("KUBECONFIG", str(api.kubectl.kubeconfig))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    def run(do: Callable[[Kubernetes], Awaitable[Any]]) -> Any:
        async def connected() -> Any:
            async with await Kubernetes.connect() as kubernetes:
                return await do(kubernetes)

        return asyncio.run(connected())

    return run
