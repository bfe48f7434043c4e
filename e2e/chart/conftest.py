"""What the chart's tests share: `helm`, and a cluster in which nobody else's CRD stands."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from e2e.chart import crd
from e2e.chart.helm import Helm
from e2e.cluster.stage import Stage


@pytest.fixture(scope="session")
def helm(api: Stage, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """`helm` for the API without nodes."""
    return Helm.of(api, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="module")
def shared_namespace(api: Stage) -> Iterator[str]:
    """A namespace for the tests of one file. What could do more than it has to is warned of there."""
    name = f"test-{secrets.token_hex(4)}"
    api.kubectl.run("create", "namespace", name)
    api.kubectl.run("label", "namespace", name, "pod-security.kubernetes.io/warn=restricted")
    yield name
    api.kubectl.try_run("delete", "namespace", name, "--wait=false")


@pytest.fixture
def no_crd(api: Stage) -> Iterator[None]:
    """No InferencePool CRD at the start; at the end it is there again if other tests of this run had applied theirs."""
    was_there = crd.is_there(api.kubectl)
    crd.remove(api.kubectl)
    yield
    crd.remove(api.kubectl)
    if was_there:
        crd.apply(api.kubectl)


@pytest.fixture
def vacant(helm: Helm, no_crd: None, api_namespace: str) -> Iterator[str]:
    """A namespace for the chart; what is installed there goes with the test, whatever its end."""
    yield api_namespace
    helm.uninstall(api_namespace)


@pytest.fixture
def installed(helm: Helm, api: Stage, vacant: str) -> str:
    """The chart installed as it is; the namespace that it is in."""
    helm.install(vacant)
    crd.wait_until_served(api.kubectl)
    return vacant
