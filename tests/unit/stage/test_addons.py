"""Cluster DNS is reached where pods are told to ask, and the firewall can be taken away again."""

from __future__ import annotations

import ipaddress
import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from e2e.cluster import addons, node_agents, pki
from e2e.cluster.layout import DNS_ADDRESS, NODE, SERVICE_CIDR

if TYPE_CHECKING:
    from e2e.cluster.layout import Layout

FOLDER = Path("/cache/addons")


def by_kind(layout: Layout) -> dict[str, dict[str, Any]]:
    return {one["kind"]: one for one in addons.dns_objects(layout)}


def test_dns_is_served_on_the_address_that_the_kubelet_tells_pods(layout: Layout) -> None:
    kubelet = json.loads(node_agents.files(layout)["kubelet.json"])
    assert [by_kind(layout)["Service"]["spec"]["clusterIP"]] == kubelet["clusterDNS"] == [DNS_ADDRESS]
    assert ipaddress.ip_address(DNS_ADDRESS) in ipaddress.ip_network(SERVICE_CIDR)


def test_the_dns_service_leads_to_the_process_on_the_node_for_both_protocols(layout: Layout) -> None:
    service, slices = by_kind(layout)["Service"], by_kind(layout)["EndpointSlice"]
    assert "selector" not in service["spec"]  # else the endpoints below would be removed
    assert slices["metadata"]["labels"]["kubernetes.io/service-name"] == service["metadata"]["name"]
    assert slices["metadata"]["namespace"] == service["metadata"]["namespace"]
    assert [(one["addresses"], one["conditions"]) for one in slices["endpoints"]] == [
        ([layout.node_address], {"ready": True})
    ]
    ports = {(one["name"], one["protocol"], one["targetPort"]) for one in service["spec"]["ports"]}
    assert ports == {(one["name"], one["protocol"], one["port"]) for one in slices["ports"]}
    assert {protocol for _, protocol, _ in ports} == {"UDP", "TCP"}
    assert {one["port"] for one in service["spec"]["ports"]} == {53}


def test_coredns_listens_on_the_port_that_the_service_leads_to(layout: Layout) -> None:
    assert addons.corefile(layout).startswith(f".:{addons.DNS_PORT} {{")
    assert by_kind(layout)["Service"]["spec"]["ports"][0]["targetPort"] == addons.DNS_PORT


def test_coredns_answers_for_the_cluster_and_asks_nobody_else(layout: Layout) -> None:
    corefile = addons.corefile(layout)
    assert "kubernetes cluster.local" in corefile
    assert "forward" not in corefile
    assert corefile.count("{") == corefile.count("}")


def test_both_addons_have_a_kubeconfig_that_is_written(layout: Layout) -> None:
    pki.write(layout)
    named = re.findall(r"\S+\.kubeconfig", addons.corefile(layout) + " ".join(firewall(layout)))
    assert len(named) == 2
    assert [name for name in named if not Path(name.removeprefix("--kubeconfig=")).is_file()] == []


def firewall(layout: Layout) -> tuple[str, ...]:
    return addons.network_policy(FOLDER, layout).flags


def test_the_firewall_knows_its_node_and_lets_the_addresses_of_services_through(layout: Layout) -> None:
    assert f"--hostname-override={NODE}" in firewall(layout)
    assert f"--service-cluster-ip-range={SERVICE_CIDR}" in firewall(layout)


def test_the_programs_are_called_as_the_stage_looks_for_them(layout: Layout) -> None:
    assert addons.coredns(FOLDER, layout).name == "coredns"
    assert addons.network_policy(FOLDER, layout).name == "network-policy"
    assert addons.coredns(FOLDER, layout).flags == ("-conf", str(layout.state / "Corefile"))


RULES = """\
*filter
:INPUT ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-ROUTER-INPUT - [0:0]
:KUBE-POD-FW-ABC - [0:0]
:KUBE-NWPLCY-DEF - [0:0]
-A INPUT -j KUBE-ROUTER-INPUT
-A INPUT -j KUBE-SERVICES
-A KUBE-POD-FW-ABC -j KUBE-NWPLCY-DEF
COMMIT
"""


@pytest.fixture
def taken_away(tmp_path: Path) -> tuple[str, set[str]]:
    """What the script that removes the firewall leaves of iptables' rules, and which sets it destroys."""
    programs = {
        "iptables-save": f'[ "$1 $2" = "-t filter" ] && cat {tmp_path}/rules',
        "iptables-restore": f"cat > {tmp_path}/restored",
        "ipset": f"[ $1 = destroy ] && echo $2 >> {tmp_path}/gone || printf 'kube-router-a\\nKUBE-SRC-b\\nother\\n'",
    }
    (tmp_path / "rules").write_text(RULES)
    for name, script in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run(["/bin/sh", "-ec", addons.REMOVE_POLICY_RULES], env=environment, check=True)
    return (tmp_path / "restored").read_text(), set((tmp_path / "gone").read_text().split())


def test_taking_the_firewall_away_leaves_the_rules_of_kube_proxy(taken_away: tuple[str, set[str]]) -> None:
    kept = ["*filter", ":INPUT ACCEPT [0:0]", ":KUBE-SERVICES - [0:0]", "-A INPUT -j KUBE-SERVICES", "COMMIT"]
    assert taken_away[0].splitlines() == kept


def test_taking_the_firewall_away_destroys_its_sets_and_no_others(taken_away: tuple[str, set[str]]) -> None:
    assert taken_away[1] == {"kube-router-a", "KUBE-SRC-b"}
