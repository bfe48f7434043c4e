"""What containerd, the kubelet and kube-proxy are called with, and the files that they read. Pure.

JSON is YAML: the kubelet and kube-proxy read their configurations as they are written here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from e2e.cluster.layout import CGROUP, DNS_ADDRESS, NODE, POD_CIDR
from e2e.cluster.programs import Program

if TYPE_CHECKING:
    from e2e.cluster.layout import Layout

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"  # in the node's own /run: short, and gone with it
PAUSE_IMAGE = "kvfence.io/stage/pause:1"
CRI_PLUGIN = "io.containerd.grpc.v1.cri"


def containerd(layout: Layout, *, cri: bool) -> Program:
    """The container runtime.

    Args:
        layout: of the stage.
        cri: serve the kubelet. Without, containerd lets go of containers that an earlier start left in its store.
    """
    return Program(Path("/usr/bin/containerd"), ("--config", str(layout.state / _containerd_file(cri=cri))))


def kubelet(folder: Path, layout: Layout) -> Program:
    """Runs the pods."""
    flags = (
        f"--config={layout.state / 'kubelet.json'}",
        f"--kubeconfig={layout.pki / 'node.kubeconfig'}",
        f"--hostname-override={NODE}",
        f"--node-ip={layout.node_address}",  # else it asks a name server that is not there
        f"--root-dir={layout.state / 'kubelet'}",
        f"--cert-dir={layout.state / 'kubelet-pki'}",
    )
    return Program(folder / "kubelet", flags)


def kube_proxy(folder: Path, layout: Layout) -> Program:
    """Makes the addresses of Services work."""
    return Program(folder / "kube-proxy", (f"--config={layout.state / 'proxy.json'}",))


def files(layout: Layout) -> dict[str, str]:
    """Configuration files by name, to be written into `layout.state`."""
    return {
        _containerd_file(cri=True): _containerd_config(layout, cri=True),
        _containerd_file(cri=False): _containerd_config(layout, cri=False),
        "cni/10-bridge.conflist": json.dumps(_pod_network()),
        "kubelet.json": json.dumps(_kubelet_config(layout), indent=1),
        "proxy.json": json.dumps(_proxy_config(layout), indent=1),
        "resolv.conf": f"nameserver {DNS_ADDRESS}\n",
    }


def _containerd_file(*, cri: bool) -> str:
    return "containerd.toml" if cri else "containerd-store-only.toml"


def _containerd_config(layout: Layout, *, cri: bool) -> str:
    disabled = "" if cri else f'"{CRI_PLUGIN}"'
    # restrict_oom_score_adj: root has no CAP_SYS_RESOURCE on this kind of machine
    # runc with cgroupfs: crun does not work on hybrid cgroups v1, and there is no systemd to ask
    return f"""\
version = 2
root = "{layout.images}"
state = "/run/containerd/state"
disabled_plugins = [{disabled}]
[grpc]
  address = "{CONTAINERD_SOCKET}"
[plugins."{CRI_PLUGIN}"]
  restrict_oom_score_adj = true
  sandbox_image = "{PAUSE_IMAGE}"
  [plugins."{CRI_PLUGIN}".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."{CRI_PLUGIN}".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."{CRI_PLUGIN}".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."{CRI_PLUGIN}".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{layout.state}/cni"
"""


def _pod_network() -> dict[str, object]:
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,  # a pod may reach itself through its Service
        "ipam": {"type": "host-local", "ranges": [[{"subnet": POD_CIDR}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, ports]}


def _kubelet_config(layout: Layout) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,  # hybrid v1 is what this kind of machine has
        "cgroupRoot": f"/{CGROUP}",
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "authentication": {
            "x509": {"clientCAFile": f"{layout.pki}/ca.crt"},
            "webhook": {"enabled": True},
            "anonymous": {"enabled": False},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{layout.pki}/node.crt",
        "tlsPrivateKeyFile": f"{layout.pki}/node.key",
        "clusterDNS": [DNS_ADDRESS],
        "clusterDomain": "cluster.local",
        "resolvConf": str(layout.state / "resolv.conf"),
        # root has no CAP_SYS_RESOURCE: neither may be raised
        "maxOpenFiles": 20000,
        "oomScoreAdj": 0,
        "failSwapOn": False,
        # the machine's disk is not the stage's to judge, and its images are cache
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "volumePluginDir": str(layout.state / "volume-plugins"),
    }


def _proxy_config(layout: Layout) -> dict[str, object]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",  # the kernel has no nftables queue
        "clusterCIDR": POD_CIDR,
        "hostnameOverride": NODE,
        "clientConnection": {"kubeconfig": str(layout.pki / "proxy.kubeconfig")},
        # connection tracking is the whole machine's: leave its limits alone
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
