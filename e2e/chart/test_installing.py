"""The chart's life on a real API server: installed, upgraded, uninstalled, and installed again."""

from __future__ import annotations

from typing import Any

import pytest

from e2e.chart.crd import CRD, CRD_NAME
from e2e.chart.helm import CHART, ROOT, Helm
from e2e.cluster.stage import Stage

POOL = ROOT / "examples" / "01-first-pool" / "pool.yaml"
EXAMPLES = sorted((ROOT / "examples").glob("*/*.yaml"))
OWN = ("deployment", "serviceaccount", "role", "rolebinding", "networkpolicy")


@pytest.fixture
def pool(installed: str, api: Stage) -> str:
    """The UID of the first example's pool, beside the operator."""
    api.kubectl.run("apply", "--namespace", installed, "--filename", str(POOL))
    return uid(api, "inferencepools.kvfence.io", "first-pool", "--namespace", installed)


def uid(api: Stage, kind: str, name: str, *where: str) -> str:
    found: str = api.kubectl.get(kind, name, *where)["metadata"]["uid"]
    return found


def upgrade(helm: Helm, namespace: str, *settings: str) -> None:
    helm.run("upgrade", "kvfence", str(CHART), "--namespace", namespace, *settings)


def variables(api: Stage, namespace: str) -> dict[str, Any]:
    deployment = api.kubectl.get("deployment", "kvfence-operator", "--namespace", namespace)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {one["name"]: one.get("value") for one in container["env"]}


def test_installing_says_what_to_do_next(helm: Helm, api: Stage, vacant: str) -> None:
    said = helm.install(vacant)
    assert "kubectl get inferencepools.kvfence.io --watch" in said
    assert f"kubectl --namespace {vacant} rollout status deployment/kvfence-operator" in said
    for kind in OWN:
        assert uid(api, kind, "kvfence-operator" + "-own-namespace" * kind.startswith("role"), "-n", vacant)


@pytest.mark.parametrize("settings", [[], ["--set=crds.enabled=false"]], ids=["with the CRD", "without the CRD"])
def test_an_upgrade_changes_settings_and_keeps_the_crd_and_pools(
    helm: Helm, api: Stage, installed: str, pool: str, settings: list[str]
) -> None:
    crd = uid(api, "crd", CRD_NAME)
    upgrade(helm, installed, "--set=resyncSeconds=60", *settings)
    assert variables(api, installed)["KVFENCE_RESYNC_SECONDS"] == "60"
    assert uid(api, "crd", CRD_NAME) == crd
    assert uid(api, "inferencepools.kvfence.io", "first-pool", "--namespace", installed) == pool


def test_uninstalling_leaves_the_crd_and_pools_and_the_next_installation_takes_them(
    helm: Helm, api: Stage, installed: str, pool: str
) -> None:
    helm.run("uninstall", "kvfence", "--namespace", installed, "--wait")
    assert (
        api.kubectl.get(",".join(OWN), "--selector=app.kubernetes.io/instance=kvfence", "-n", installed)["items"] == []
    )
    selector = "--selector=app.kubernetes.io/instance=kvfence,app.kubernetes.io/name=kvfence-operator"
    assert api.kubectl.get("clusterrole,clusterrolebinding", selector)["items"] == []
    assert uid(api, "inferencepools.kvfence.io", "first-pool", "--namespace", installed) == pool
    helm.install(installed)
    assert uid(api, "inferencepools.kvfence.io", "first-pool", "--namespace", installed) == pool


def test_a_crd_without_the_policy_goes_with_the_release(helm: Helm, api: Stage, vacant: str) -> None:
    said = helm.install(vacant, "--set=crds.keep=false")
    assert "will delete the CustomResourceDefinition" in said
    assert api.kubectl.try_run("get", "crd", CRD_NAME).returncode == 0
    helm.run("uninstall", "kvfence", "--namespace", vacant, "--wait")
    assert "NotFound" in api.kubectl.try_run("get", "crd", CRD_NAME).stderr


def test_a_crd_applied_by_hand_is_refused_unless_it_is_to_be_taken_over(helm: Helm, api: Stage, vacant: str) -> None:
    api.kubectl.run("create", "--filename", str(CRD))
    before = uid(api, "crd", CRD_NAME)
    refused = helm.try_run("install", "kvfence", str(CHART), "--namespace", vacant)
    assert refused.returncode != 0
    assert "invalid ownership metadata" in refused.stderr
    helm.uninstall(vacant)
    helm.install(vacant, "--take-ownership")
    assert uid(api, "crd", CRD_NAME) == before


def test_a_second_operator_for_the_same_pools_is_refused(helm: Helm, installed: str) -> None:
    for namespace in ("default", installed):
        ran = helm.try_run("install", "second", str(CHART), "--namespace", namespace, "--set=crds.enabled=false")
        helm.uninstall(namespace, "second")
        assert ran.returncode != 0
        assert "cannot be imported into the current release" in ran.stderr


def test_the_api_server_takes_the_examples_and_refuses_them_spoilt(api: Stage, installed: str) -> None:
    apply = ("apply", "--dry-run=server", "--validate=strict", "--namespace", installed, "--filename", "-")
    for path in EXAMPLES:
        ran = api.kubectl.try_run(*apply, given=path.read_text())
        assert (ran.returncode, ran.stderr) == (0, ""), path.name
        assert ran.stdout.endswith(" created (server dry run)\n")
    text = POOL.read_text()
    for good, bad, says in (
        ("requestedTokens: 4096", "requestedToken: 4096", 'unknown field "spec.contextLength.requestedToken"'),
        ("--page-size=1", "--model-path=/x", "spec.engine.sglang.args"),
    ):
        assert good in text
        ran = api.kubectl.try_run(*apply, given=text.replace(good, bad))
        assert ran.returncode != 0
        assert says in ran.stderr
