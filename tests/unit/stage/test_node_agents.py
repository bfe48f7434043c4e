"""What containerd, the kubelet and kube-proxy are told, each setting for the trap that its test names."""

from __future__ import annotations

import ipaddress
import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from e2e.cluster import node, node_agents, pki
from e2e.cluster.layout import CGROUP, DNS_ADDRESS, NODE, POD_CIDR, SERVICE_CIDR
from e2e.cluster.small_images import BUSYBOX_IMAGE

if TYPE_CHECKING:
    from e2e.cluster.layout import Layout

FOLDER = Path("/cache/kubernetes")


def kubelet_config(layout: Layout) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(node_agents.files(layout)["kubelet.json"])
    return found


def containerd_config(layout: Layout, *, cri: bool = True) -> dict[str, Any]:
    path = Path(node_agents.containerd(layout, cri=cri).flags[1])
    assert path.parent == layout.state
    return tomllib.loads(node_agents.files(layout)[path.name])


def cri(layout: Layout) -> dict[str, Any]:
    found: dict[str, Any] = containerd_config(layout)["plugins"][node_agents.CRI_PLUGIN]
    return found


def test_the_kubelet_starts_on_hybrid_cgroups_v1(layout: Layout) -> None:
    config = kubelet_config(layout)
    assert config["failCgroupV1"] is False
    assert config["cgroupDriver"] == "cgroupfs"


def test_containerd_makes_cgroups_as_the_kubelet_does_since_there_is_no_systemd_and_crun_does_not_work(
    layout: Layout,
) -> None:
    runtimes = cri(layout)["containerd"]
    assert runtimes["default_runtime_name"] == "runc"
    assert set(runtimes["runtimes"]) == {"runc"}
    assert runtimes["runtimes"]["runc"]["options"]["SystemdCgroup"] is False


def test_root_lacks_sys_resource_so_neither_the_limit_of_open_files_nor_oom_scores_are_raised(layout: Layout) -> None:
    config = kubelet_config(layout)
    assert config["maxOpenFiles"] == 20000
    assert config["oomScoreAdj"] == 0
    assert cri(layout)["restrict_oom_score_adj"] is True


def test_the_kubelet_is_given_its_address_else_it_stalls_in_dns(layout: Layout) -> None:
    flags = node_agents.kubelet(FOLDER, layout).flags
    assert f"--node-ip={layout.node_address}" in flags
    assert f"--hostname-override={NODE}" in flags


def test_pods_are_told_the_cluster_dns_and_the_node_names_no_server_of_the_world(layout: Layout) -> None:
    config = kubelet_config(layout)
    assert config["clusterDNS"] == [DNS_ADDRESS]
    resolv_conf = Path(config["resolvConf"])
    assert resolv_conf.parent == layout.state
    assert node_agents.files(layout)[resolv_conf.name] == f"nameserver {DNS_ADDRESS}\n"


def test_the_pause_image_has_the_name_that_containerd_asks_for_and_a_tag_that_is_not_pulled(layout: Layout) -> None:
    assert cri(layout)["sandbox_image"] == node_agents.PAUSE_IMAGE
    for image in (node_agents.PAUSE_IMAGE, BUSYBOX_IMAGE):
        assert image.rpartition(":")[2] not in {"", "latest"}
        assert "/" not in image.rpartition(":")[2]


def test_the_cgroups_of_pods_lie_in_a_group_of_the_stage_so_that_all_of_them_can_be_removed(layout: Layout) -> None:
    assert kubelet_config(layout)["cgroupRoot"] == f"/{CGROUP}"


def test_pods_and_what_they_leave_lie_where_they_go_with_the_node_and_images_in_the_cache(layout: Layout) -> None:
    config = containerd_config(layout)
    assert config["state"].startswith("/run/")
    assert config["grpc"]["address"] == node_agents.CONTAINERD_SOCKET
    assert config["grpc"]["address"].startswith("/run/")
    assert "/run" in node.PRIVATE_FOLDERS
    assert config["root"] == str(layout.images)
    assert not layout.images.is_relative_to(layout.state)  # which is emptied at each start


def test_the_kubelet_talks_to_the_containerd_of_the_node(layout: Layout) -> None:
    assert kubelet_config(layout)["containerRuntimeEndpoint"] == f"unix://{node_agents.CONTAINERD_SOCKET}"


def test_containers_of_an_earlier_start_are_removed_before_the_kubelet_is_served(layout: Layout) -> None:
    store_only, serving = containerd_config(layout, cri=False), containerd_config(layout)
    assert store_only["disabled_plugins"] == [node_agents.CRI_PLUGIN]
    assert serving["disabled_plugins"] == []
    assert store_only["root"] == serving["root"]


def test_every_file_that_is_named_is_written(layout: Layout) -> None:
    pki.write(layout)
    written = {str(layout.state / name) for name in node_agents.files(layout)}
    config = kubelet_config(layout)
    called = [*node_agents.kubelet(FOLDER, layout).flags, *node_agents.kube_proxy(FOLDER, layout).flags]
    assert {flag.removeprefix("--config=") for flag in called if flag.startswith("--config=")} <= written
    proxy = json.loads(node_agents.files(layout)["proxy.json"])
    certificates = [
        config["tlsCertFile"],
        config["tlsPrivateKeyFile"],
        config["authentication"]["x509"]["clientCAFile"],
    ]
    kubeconfigs = [proxy["clientConnection"]["kubeconfig"], str(layout.pki / "node.kubeconfig")]
    assert f"--kubeconfig={layout.pki / 'node.kubeconfig'}" in called
    assert [name for name in (*certificates, *kubeconfigs) if not Path(name).is_file()] == []
    networks = Path(cri(layout)["cni"]["conf_dir"])
    assert [name for name in written if Path(name).parent == networks] == [str(networks / "10-bridge.conflist")]


@pytest.mark.parametrize("flag", ["--root-dir", "--cert-dir"])
def test_what_the_kubelet_writes_lies_in_the_folder_of_the_stage(flag: str, layout: Layout) -> None:
    flags = dict(one.split("=", 1) for one in node_agents.kubelet(FOLDER, layout).flags)
    assert Path(flags[flag]).is_relative_to(layout.state)


def test_nobody_reads_logs_from_the_kubelet_without_the_right_to(layout: Layout) -> None:
    config = kubelet_config(layout)
    assert config["authentication"]["anonymous"]["enabled"] is False
    assert config["authentication"]["webhook"]["enabled"] is True
    assert config["authorization"]["mode"] == "Webhook"


def test_a_full_disk_of_the_machine_neither_evicts_pods_nor_removes_images(layout: Layout) -> None:
    config = kubelet_config(layout)
    assert config["imageGCHighThresholdPercent"] == 100
    assert config["evictionHard"]["nodefs.available"] == config["evictionHard"]["imagefs.available"] == "1%"


def test_kube_proxy_leaves_the_connection_tracking_of_the_whole_machine_alone(layout: Layout) -> None:
    proxy = json.loads(node_agents.files(layout)["proxy.json"])
    assert set(proxy["conntrack"].values()) == {0, "0s"}


def test_kube_proxy_uses_iptables_since_the_kernel_has_no_nft_queue(layout: Layout) -> None:
    proxy = json.loads(node_agents.files(layout)["proxy.json"])
    assert (proxy["mode"], proxy["clusterCIDR"], proxy["hostnameOverride"]) == ("iptables", POD_CIDR, NODE)


def test_pods_have_addresses_of_the_range_that_is_routed_to_the_node(layout: Layout) -> None:
    network = json.loads(node_agents.files(layout)["cni/10-bridge.conflist"])
    bridge = network["plugins"][0]
    assert bridge["ipam"]["ranges"] == [[{"subnet": POD_CIDR}]]
    assert bridge["isGateway"] is True
    assert bridge["hairpinMode"] is True  # a pod reaches itself through its Service
    pods, services = ipaddress.ip_network(POD_CIDR), ipaddress.ip_network(SERVICE_CIDR)
    assert not pods.overlaps(services)
