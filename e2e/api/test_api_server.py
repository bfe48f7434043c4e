"""The API without nodes is a real one: its controllers work, its version is known, its writes can be counted."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from e2e.cluster import golang
from e2e.cluster.audit import AuditLog
from e2e.cluster.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.cluster.stage import Stage


def test_the_server_says_the_version_it_was_built_from(api: Stage) -> None:
    server = json.loads(api.kubectl.run("version", "--output", "json"))["serverVersion"]
    assert server["gitVersion"] == golang.kubernetes_version()
    assert server["minor"] == golang.kubernetes_version().split(".")[1]


def test_helm_installs_a_chart_that_asks_for_this_kubernetes_and_refuses_a_newer_one(
    api: Stage, api_namespace: str, tmp_path: Path
) -> None:
    minor = int(golang.kubernetes_version().split(".")[1])

    def install(name: str, wanted: str) -> subprocess.CompletedProcess[str]:
        chart = tmp_path / name
        (chart / "templates").mkdir(parents=True)
        about = {"apiVersion": "v2", "name": name, "version": "0.1.0", "kubeVersion": wanted}
        (chart / "Chart.yaml").write_text(json.dumps(about))
        secret = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"from": "helm"}}
        (chart / "templates" / "object.yaml").write_text(json.dumps(secret))
        command = [str(api.helm), "install", name, str(chart), "--namespace", api_namespace]
        return subprocess.run(
            [*command, "--kubeconfig", str(api.layout.kubeconfig)], capture_output=True, text=True, check=False
        )

    fits = install("fits", f">=1.{minor}.0")
    assert fits.returncode == 0, fits.stderr
    assert api.kubectl.get("configmap", "fits", "--namespace", api_namespace)["data"] == {"from": "helm"}
    newer = install("newer", f">=1.{minor + 1}.0")
    assert newer.returncode != 0
    assert "incompatible" in newer.stderr


def test_a_deployment_gets_its_replica_set_and_pods_wait_for_a_node(api: Stage, api_namespace: str) -> None:
    api.kubectl.run("create", "deployment", "web", "--image=example.invalid/web:1", "--namespace", api_namespace)

    def pods() -> list[dict[str, dict[str, str]]]:
        found: list[dict[str, dict[str, str]]] = api.kubectl.get("pods", "--namespace", api_namespace)["items"]
        return found

    wait_for("the controller-manager to make a pod", lambda: bool(pods()), 30)
    assert pods()[0]["status"]["phase"] == "Pending"


def test_each_write_and_no_read_is_counted(api: Stage, api_namespace: str) -> None:
    log = AuditLog(api.layout.audit_log)
    where = ("--namespace", api_namespace)

    def writes_of(*arguments: str) -> list[tuple[str, str, str]]:
        before = log.position()
        api.kubectl.run(*arguments, *where)
        mine = (one for one in log.since(before) if one.namespace == api_namespace and one.user == "admin")
        return [(one.verb, one.resource, one.name) for one in mine if one.is_write]

    assert writes_of("create", "configmap", "counted", "--from-literal=a=1") == [("create", "configmaps", "counted")]
    assert writes_of("get", "configmap", "counted") == []
    assert writes_of("label", "configmap", "counted", "b=2") == [("patch", "configmaps", "counted")]
    assert writes_of("delete", "configmap", "counted") == [("delete", "configmaps", "counted")]
