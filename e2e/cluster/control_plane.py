"""What etcd, the API server, the controller-manager and the scheduler are called with. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from e2e.cluster.layout import SERVICE_CIDR
from e2e.cluster.programs import Program

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.cluster.layout import Layout

ETCD_PORT = 2379
ETCD_CLIENTS = f"http://127.0.0.1:{ETCD_PORT}"
ETCD_PEERS = "http://127.0.0.1:2380"
AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
"""


def etcd(folder: Path, layout: Layout) -> Program:
    """The store. Nothing is flushed to disk: a stage that was killed starts with an empty one."""
    flags = {
        "--data-dir": str(layout.state / "etcd"),
        "--listen-client-urls": ETCD_CLIENTS,
        "--advertise-client-urls": ETCD_CLIENTS,
        "--listen-peer-urls": ETCD_PEERS,
        "--initial-advertise-peer-urls": ETCD_PEERS,
        "--initial-cluster": f"default={ETCD_PEERS}",
    }
    return Program(folder / "etcd", (*_joined(flags), "--unsafe-no-fsync"))


def apiserver(folder: Path, layout: Layout, *, audit: bool) -> Program:
    """The API server, with the authorizers and admission plugins of an ordinary cluster."""
    pki = layout.pki
    flags = {
        "--etcd-servers": ETCD_CLIENTS,
        "--service-cluster-ip-range": SERVICE_CIDR,
        "--secure-port": "6443",
        "--advertise-address": layout.node_address,
        "--client-ca-file": f"{pki}/ca.crt",
        "--tls-cert-file": f"{pki}/apiserver.crt",
        "--tls-private-key-file": f"{pki}/apiserver.key",
        "--service-account-issuer": "https://kubernetes.default.svc",
        "--service-account-key-file": f"{pki}/service-accounts.pub",
        "--service-account-signing-key-file": f"{pki}/service-accounts.key",
        "--authorization-mode": "Node,RBAC",
        "--enable-admission-plugins": "NodeRestriction",
        "--kubelet-client-certificate": f"{pki}/apiserver-kubelet.crt",
        "--kubelet-client-key": f"{pki}/apiserver-kubelet.key",
        "--kubelet-preferred-address-types": "InternalIP",
        "--requestheader-client-ca-file": f"{pki}/front-proxy-ca.crt",
        "--requestheader-allowed-names": "front-proxy-client",
        "--requestheader-username-headers": "X-Remote-User",
        "--requestheader-group-headers": "X-Remote-Group",
        "--requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "--proxy-client-cert-file": f"{pki}/front-proxy-client.crt",
        "--proxy-client-key-file": f"{pki}/front-proxy-client.key",
        "--allow-privileged": "true",
    }
    if audit:
        flags |= {
            "--audit-policy-file": str(audit_policy_file(layout)),
            "--audit-log-path": str(layout.audit_log),
            "--audit-log-maxsize": "0",  # never rotated: a position in it stays what it was
            "--audit-log-mode": "blocking",  # an event is on disk when the answer is out: tests count right after
        }
    return Program(folder / "kube-apiserver", _joined(flags))


def audit_policy_file(layout: Layout) -> Path:
    """Where `AUDIT_POLICY` is written."""
    return layout.state / "audit-policy.yaml"


def controller_manager(folder: Path, layout: Layout) -> Program:
    """Controllers of Deployments, ReplicaSets, garbage collection, service accounts and the rest."""
    pki = layout.pki
    flags = {
        **_kubeconfig(f"{pki}/controller-manager.kubeconfig"),
        "--service-account-private-key-file": f"{pki}/service-accounts.key",
        "--root-ca-file": f"{pki}/ca.crt",
        "--cluster-signing-cert-file": f"{pki}/ca.crt",
        "--cluster-signing-key-file": f"{pki}/ca.key",
        "--use-service-account-credentials": "true",
        "--leader-elect": "false",  # there is one; no lease is written, no start waits for one
        # it makes a client for each of 40 controllers when it starts: 3 s less than with the default of 20 a second
        "--kube-api-qps": "200",
        "--kube-api-burst": "400",
    }
    return Program(folder / "kube-controller-manager", _joined(flags))


def scheduler(folder: Path, layout: Layout) -> Program:
    """Assigns pods to the node."""
    flags = {**_kubeconfig(f"{layout.pki}/scheduler.kubeconfig"), "--leader-elect": "false"}
    return Program(folder / "kube-scheduler", _joined(flags))


def _kubeconfig(path: str) -> dict[str, str]:
    return dict.fromkeys(("--kubeconfig", "--authentication-kubeconfig", "--authorization-kubeconfig"), path)


def _joined(flags: dict[str, str]) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in flags.items())
