"""What end-to-end tests stand on.

A stage that is up before the run is used and put back as it was; one that the run brought up goes. The exception are
the tests in `lifecycle/`, which bring the stage up and down themselves: they run first, and refuse to when one is up.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import TYPE_CHECKING

import pytest

from e2e.cluster import stage
from e2e.cluster.layout import API_ONLY, STAGE, Switches
from e2e.engines import on_stage, processes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.cluster.kubectl import Kubectl
    from e2e.cluster.stage import Stage
    from e2e.engines.processes import Running
    from e2e.engines.servers import Reached, Server


Aloud = Callable[[], AbstractContextManager[None]]
Measured = Callable[[str, float, float], None]

MEASURED = pytest.StashKey[list[str]]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that end the stage come before those that share one."""
    items.sort(key=lambda item: "cluster" in getattr(item, "fixturenames", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show what was measured against the bounds that tests assert."""
    if lines := config.stash.get(MEASURED, []):
        terminalreporter.section("measured")
        terminalreporter.write_line("\n".join(lines))


@pytest.fixture
def measured(pytestconfig: pytest.Config) -> Measured:
    """Call it with what, how long it took and its bound, in seconds: asserted, and printed at the end of the run."""

    def check(what: str, seconds: float, bound: float) -> None:
        line = f"{what}: {seconds:.3f} s, bound {bound:.0f} s"
        pytestconfig.stash.setdefault(MEASURED, []).append(line)
        assert seconds <= bound, line

    return check


@pytest.fixture(scope="session")
def aloud(request: pytest.FixtureRequest) -> Aloud:
    """Call it around a long step: what the step says is seen while it runs, not only when a test fails."""
    manager = request.config.pluginmanager.getplugin("capturemanager")
    return manager.global_and_fixture_disabled if manager else nullcontext


@pytest.fixture(scope="session")
def api(aloud: Aloud) -> Iterator[Stage]:
    """A real Kubernetes API without nodes, with its audit log."""
    with ExitStack() as borrowed:
        with aloud():
            up = borrowed.enter_context(stage.borrowed(API_ONLY, Switches(audit=True)))
        yield up


@pytest.fixture(scope="session")
def cluster(aloud: Aloud) -> Iterator[Stage]:
    """The whole stage, with DNS, enforced NetworkPolicy and the audit log."""
    with ExitStack() as borrowed:
        with aloud():
            switches = Switches(dns=True, network_policy=True, audit=True)
            up = borrowed.enter_context(stage.borrowed(STAGE, switches))
        yield up


def _namespace(kubectl: Kubectl) -> Iterator[str]:
    name = f"test-{secrets.token_hex(4)}"
    kubectl.run("create", "namespace", name)
    yield name
    kubectl.try_run("delete", "namespace", name, "--wait=false")


@pytest.fixture
def api_namespace(api: Stage) -> Iterator[str]:
    """A namespace of the test's own on `api`."""
    yield from _namespace(api.kubectl)


@pytest.fixture
def namespace(cluster: Stage) -> Iterator[str]:
    """A namespace of the test's own on `cluster`."""
    yield from _namespace(cluster.kubectl)


@pytest.fixture(scope="module")
def sglang_processes(
    tmp_path_factory: pytest.TempPathFactory, aloud: Aloud
) -> Iterator[Callable[..., dict[str, Running]]]:
    """Call it with servers: it starts them at once as processes on loopback, and returns them by name."""
    with ExitStack() as started:

        def start(*servers: Server) -> dict[str, Running]:
            folder = tmp_path_factory.mktemp("logs")
            with aloud():
                running = started.enter_context(processes.running(servers, folder))
            return {one.server.name: one for one in running}

        yield start


@pytest.fixture(scope="module")
def sglang_pods(cluster: Stage, aloud: Aloud) -> Iterator[Callable[..., dict[str, Reached]]]:
    """Call it with servers: it starts them at once as pods in a namespace of their own, and returns them by name."""
    with ExitStack() as started:

        def start(*servers: Server) -> dict[str, Reached]:
            with aloud():
                pods = started.enter_context(on_stage.running(cluster, servers, f"sglang-{secrets.token_hex(4)}"))
            return {one.server.name: one for one in pods}

        yield start
