"""What the add-ons are called with, and the objects that make cluster DNS known. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from e2e.cluster.layout import DNS_ADDRESS, NODE, SERVICE_CIDR
from e2e.cluster.programs import Program

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.cluster.layout import Layout

DNS_PORT = 1053
# Chains and sets that kube-router's firewall makes all start with these; without them its rules are gone.
POLICY_CHAINS = "KUBE-ROUTER-|KUBE-POD-FW-|KUBE-NWPLCY-"
# Removes the firewall's rules, in the order that iptables and ipset demand: rules, then chains, then sets.
REMOVE_POLICY_RULES = f"""\
iptables-save -t filter | grep -Ev -- '{POLICY_CHAINS}' | iptables-restore -T filter
for set in $(ipset list -name); do case $set in kube-router-*|KUBE-*) ipset destroy "$set";; esac; done
"""


def coredns(folder: Path, layout: Layout) -> Program:
    """Cluster DNS, as a process on the node."""
    return Program(folder / "coredns", ("-conf", str(layout.state / "Corefile")))


def network_policy(folder: Path, layout: Layout) -> Program:
    """NetworkPolicy enforced on packets, as a process on the node."""
    flags = (
        f"--kubeconfig={layout.pki / 'addons.kubeconfig'}",
        f"--hostname-override={NODE}",
        f"--service-cluster-ip-range={SERVICE_CIDR}",
    )
    return Program(folder / "network-policy", flags)


def corefile(layout: Layout) -> str:
    """CoreDNS's configuration: the names of the cluster, and nothing of the world outside."""
    return f"""\
.:{DNS_PORT} {{
    errors
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {layout.pki / "addons.kubeconfig"}
        ttl 1
    }}
}}
"""


def dns_objects(layout: Layout) -> list[dict[str, Any]]:
    """The Service `kube-dns` and where it leads: to the process on the node."""
    protocols = (("dns", "UDP"), ("dns-tcp", "TCP"))
    service: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", "namespace": "kube-system"},
        "spec": {
            "clusterIP": DNS_ADDRESS,
            "ports": [{"name": n, "port": 53, "targetPort": DNS_PORT, "protocol": p} for n, p in protocols],
        },
    }
    endpoints: dict[str, Any] = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kube-dns",
            "namespace": "kube-system",
            "labels": {"kubernetes.io/service-name": "kube-dns"},
        },
        "addressType": "IPv4",
        "ports": [{"name": n, "port": DNS_PORT, "protocol": p} for n, p in protocols],
        "endpoints": [{"addresses": [layout.node_address], "conditions": {"ready": True}}],
    }
    return [service, endpoints]
