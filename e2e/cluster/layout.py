"""What a stage is made of: its name, addresses, switches, and the places of its files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from e2e import cache

if TYPE_CHECKING:
    from pathlib import Path

NODE = "node1"
POD_CIDR = "10.244.0.0/24"
SERVICE_CIDR = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"
DNS_ADDRESS = "10.96.0.10"
CGROUP = "kvfence-stage"


@dataclass(frozen=True, slots=True)
class Switches:
    """What a cluster may have beside Kubernetes itself."""

    dns: bool = False
    """Names of Services resolve in pods (CoreDNS)."""
    network_policy: bool = False
    """NetworkPolicy objects are enforced on packets (kube-router's firewall); else they are objects like any other."""
    audit: bool = False
    """Every request to the API server is written to `Layout.audit_log`, for counting writes."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Names and places of one stage. A machine has room for one with a node, and for any number without."""

    name: str
    """Tells this stage's processes and files from another's."""
    subnet: int
    """Which /30 of 198.18.0.0/24 (a block reserved for tests) joins the node to this machine; no two the same."""
    with_node: bool
    """A kubelet and what it needs; without, the API alone: etcd, API server, controller-manager."""
    root: Path = field(default_factory=cache.root)

    @property
    def host_address(self) -> str:
        """This machine's end of the link to the node."""
        return f"198.18.0.{4 * self.subnet + 1}"

    @property
    def node_address(self) -> str:
        """The node's end, on which the API server listens."""
        return f"198.18.0.{4 * self.subnet + 2}"

    @property
    def api_server(self) -> str:
        """URL of the API server, the same from this machine and from the node."""
        return f"https://{self.node_address}:6443"

    @property
    def link(self) -> str:
        """Name of this machine's network interface to the node."""
        return f"kvf-{self.name}"

    @property
    def state(self) -> Path:
        """All files of this stage; emptied at each start."""
        return self.root / "stages" / self.name

    @property
    def logs(self) -> Path:
        """One log per program. Kept after `down`, until the next `up`."""
        return self.state / "logs"

    @property
    def pki(self) -> Path:
        """Certificates, keys and kubeconfigs of this start."""
        return self.state / "pki"

    @property
    def kubeconfig(self) -> Path:
        """Of the cluster's administrator."""
        return self.pki / "admin.kubeconfig"

    @property
    def audit_log(self) -> Path:
        """One JSON event per request to the API server, when the switch is on."""
        return self.logs / "audit.log"

    @property
    def images(self) -> Path:
        """containerd's image store: cache, so that 2 GB are imported once."""
        return self.root / "images"


STAGE = Layout("stage", 0, with_node=True)
API_ONLY = Layout("api", 1, with_node=False)
