"""What end-to-end tests stand on. A stage that was up before the run stays up; one that the run brought up goes."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from e2e.cluster import node, stage
from e2e.cluster.layout import API_ONLY, STAGE, Layout, Switches
from e2e.engines import on_stage, processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from e2e.cluster.kubectl import Kubectl
    from e2e.cluster.stage import Stage
    from e2e.engines.processes import Running
    from e2e.engines.servers import Reached, Server


def _up(layout: Layout, switches: Switches) -> Iterator[Stage]:
    was_up = node.find(layout) is not None
    yield stage.up(layout, switches)
    if not was_up:
        stage.down(layout)


@pytest.fixture(scope="session")
def api() -> Iterator[Stage]:
    """A real Kubernetes API without nodes, with its audit log."""
    yield from _up(API_ONLY, Switches(audit=True))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Stage]:
    """The whole stage, with DNS, enforced NetworkPolicy and the audit log."""
    yield from _up(STAGE, Switches(dns=True, network_policy=True, audit=True))


def _namespace(kubectl: Kubectl) -> Iterator[str]:
    name = f"test-{secrets.token_hex(4)}"
    kubectl.run("create", "namespace", name)
    yield name
    kubectl.run("delete", "namespace", name, "--wait=false")


@pytest.fixture
def api_namespace(api: Stage) -> Iterator[str]:
    """A namespace of the test's own on `api`."""
    yield from _namespace(api.kubectl)


@pytest.fixture
def namespace(cluster: Stage) -> Iterator[str]:
    """A namespace of the test's own on `cluster`."""
    yield from _namespace(cluster.kubectl)


@pytest.fixture(scope="module")
def sglang_processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., dict[str, Running]]]:
    """Call it with servers: it starts them at once as processes on loopback, and returns them by name."""
    with ExitStack() as started:

        def start(*servers: Server) -> dict[str, Running]:
            folder = tmp_path_factory.mktemp("logs")
            return {one.server.name: one for one in started.enter_context(processes.running(servers, folder))}

        yield start


@pytest.fixture(scope="module")
def sglang_pods(cluster: Stage) -> Iterator[Callable[..., dict[str, Reached]]]:
    """Call it with servers: it starts them at once as pods in a namespace of their own, and returns them by name."""
    with ExitStack() as started:

        def start(*servers: Server) -> dict[str, Reached]:
            pods = started.enter_context(on_stage.running(cluster, servers, f"sglang-{secrets.token_hex(4)}"))
            return {one.server.name: one for one in pods}

        yield start
