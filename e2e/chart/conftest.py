"""What the chart's tests share: `helm`, and a cluster in which nobody else's CRD stands."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from e2e.chart.helm import CRD, CRD_NAME, Helm
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
    was_there = CRD_NAME in api.kubectl.run("get", "crd", "--output", "name")
    if was_there:
        _remove_crd(api)
    yield
    _remove_crd(api)
    if was_there:
        api.kubectl.run("apply", "--filename", str(CRD))
        api.kubectl.run("wait", "--for=condition=Established", f"crd/{CRD_NAME}", "--timeout=30s")


@pytest.fixture
def vacant(helm: Helm, no_crd: None, api_namespace: str) -> Iterator[str]:
    """A namespace for the chart; what is installed there goes with the test, whatever its end."""
    yield api_namespace
    helm.uninstall(api_namespace)


@pytest.fixture
def installed(helm: Helm, api: Stage, vacant: str) -> str:
    """The chart installed as it is; the namespace that it is in."""
    helm.install(vacant)
    api.kubectl.run("wait", "--for=condition=Established", f"crd/{CRD_NAME}", "--timeout=30s")
    return vacant


def _remove_crd(api: Stage) -> None:
    api.kubectl.run("delete", "crd", CRD_NAME, "--ignore-not-found", "--timeout=60s")
