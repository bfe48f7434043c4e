"""Pods reach each other by name, and a NetworkPolicy drops packets exactly when its switch is on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from e2e.cluster import busybox, stage
from e2e.cluster.layout import STAGE, Switches
from e2e.cluster.waiting import wait_for

if TYPE_CHECKING:
    from e2e.cluster.stage import Stage

POLICY_SECONDS = 10.0  # 5 s were seen on a busy machine
SERVICE_SECONDS = 20.0
TEXT = "hello-from-web"


@pytest.fixture
def web(cluster: Stage, namespace: str) -> str:
    """A web server behind the Service `web`, and a pod `client`, in the namespace that is returned."""
    objects = [
        busybox.web_server("web", TEXT, {"app": "web"}),
        busybox.service("web", {"app": "web"}),
        busybox.pod("client", ["sleep", "3600"]),
    ]
    bundle = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    cluster.kubectl.run("apply", "--namespace", namespace, "--filename", "-", given=bundle)
    cluster.kubectl.run("wait", "--namespace", namespace, "--for=condition=Ready", "pod", "--all", "--timeout=60s")
    # A pod is ready some moments before the node's rules lead to it.
    address = cluster.kubectl.get("service", "web", "--namespace", namespace)["spec"]["clusterIP"]
    wait_for("the Service to lead to the pod", lambda: TEXT in answer(cluster, namespace, address), SERVICE_SECONDS)
    return namespace


def answer(cluster: Stage, namespace: str, host: str) -> str:
    """What the client pod gets from `host`; empty when the connection is refused or dropped."""
    ask = f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | timeout 3 nc {host} 80"
    ran = cluster.kubectl.try_run("exec", "--namespace", namespace, "client", "--", "/bin/sh", "-c", ask)
    return ran.stdout


def test_a_pod_reaches_another_by_the_name_of_its_service(cluster: Stage, web: str) -> None:
    for name in ("web", f"web.{web}", f"web.{web}.svc.cluster.local"):
        assert TEXT in answer(cluster, web, name)


def test_a_pod_reaches_the_api_server(cluster: Stage, web: str) -> None:
    look = "nc -w 3 10.96.0.1 443 </dev/null && echo open"
    ran = cluster.kubectl.try_run("exec", "--namespace", web, "client", "--", "/bin/sh", "-c", look)
    assert ran.stdout.strip() == "open", ran.stderr


def test_without_dns_the_name_is_unknown_and_the_address_still_answers(cluster: Stage, web: str) -> None:
    address = cluster.kubectl.get("service", "web", "--namespace", web)["spec"]["clusterIP"]
    try:
        stage.up(STAGE, Switches(dns=False, network_policy=True, audit=True))
        assert answer(cluster, web, "web") == ""
        assert TEXT in answer(cluster, web, address)
    finally:
        stage.up(STAGE, cluster.switches)
    assert TEXT in answer(cluster, web, "web")


def test_a_network_policy_refuses_with_the_switch_on_and_lets_through_with_it_off(cluster: Stage, web: str) -> None:
    only_friends = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "only-friends"},
        "spec": {
            "podSelector": {"matchLabels": {"app": "web"}},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": {"matchLabels": {"friend": "yes"}}}]}],
        },
    }

    def open_to_client() -> bool:
        return TEXT in answer(cluster, web, "web")

    assert open_to_client()
    cluster.kubectl.run("apply", "--namespace", web, "--filename", "-", given=json.dumps(only_friends))
    wait_for("the policy to refuse a stranger", lambda: not open_to_client(), POLICY_SECONDS)
    cluster.kubectl.run("label", "--namespace", web, "pod", "client", "friend=yes")
    wait_for("the policy to let a friend in", open_to_client, POLICY_SECONDS)
    cluster.kubectl.run("label", "--namespace", web, "pod", "client", "friend-")
    wait_for("the policy to refuse a stranger again", lambda: not open_to_client(), POLICY_SECONDS)
    try:
        stage.up(STAGE, Switches(dns=True, network_policy=False, audit=True))
        assert open_to_client(), "the policy is only an object now, and must not refuse"
    finally:
        stage.up(STAGE, cluster.switches)
    wait_for("the policy to refuse with the switch on again", lambda: not open_to_client(), POLICY_SECONDS)
