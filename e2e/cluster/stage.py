"""Bring a stage up and take it away."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from e2e import cache
from e2e.cluster import (
    addons,
    clients,
    control_plane,
    golang,
    node,
    node_agents,
    packages,
    pki,
    process_table,
    programs,
    small_images,
)
from e2e.cluster.image_store import ImageStore
from e2e.cluster.kubectl import Kubectl
from e2e.cluster.layout import NODE, Layout, Switches
from e2e.cluster.waiting import wait_for
from e2e.errors import ApiserverHungError, StageError
from e2e.progress import say, step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.cluster.node import Node

# Generous against what was seen idle on 2 cores: etcd 0.3 s, the API server 2 s, all of it 5 s
ETCD_SECONDS = 30.0
APISERVER_SECONDS = 45.0
CONTAINERD_SECONDS = 30.0
NODE_READY_SECONDS = 120.0
SERVICE_ACCOUNT_SECONDS = 90.0
ADDON_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Parts:
    """Folders with the programs of the stage. Asking for them builds what is not built yet."""

    kubernetes: Path
    etcd: Path
    addons: Path
    clients: Path

    @classmethod
    def build(cls, layout: Layout) -> Parts:
        """Have all that `layout` needs on this machine."""
        packages.install(packages.NODE_PACKAGES)
        golang.init()
        none = Path()
        return cls(golang.kubernetes(), golang.etcd(), golang.addons() if layout.with_node else none, clients.folder())


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage that is up."""

    layout: Layout
    switches: Switches
    parts: Parts
    node: Node

    @property
    def kubectl(self) -> Kubectl:
        """`kubectl` as the cluster's administrator."""
        return Kubectl(self.parts.clients / "kubectl", self.layout.kubeconfig)

    @property
    def images(self) -> ImageStore:
        """The images on the node."""
        return ImageStore(self.node)

    @property
    def helm(self) -> Path:
        """The `helm` program."""
        return self.parts.clients / "helm"


def up(layout: Layout, switches: Switches) -> Stage:
    """Have this stage up with these switches.

    A healthy one stays; its DNS and NetworkPolicy are switched as it runs. Anything else that is left of an earlier
    start is removed first, whatever its state.

    Raises:
        StageError: it does not come up; the message says which part and has the end of its log.
    """
    _ask_for_root()
    parts = Parts.build(layout)
    with cache.lock(f"stage-{layout.name}"):
        there = running(layout)
        if there and there.parts == parts and there.switches.audit == switches.audit:
            return _switched(there, switches)
        _refuse_another_cache(layout)
        try:
            return _start_afresh(layout, switches, parts)
        except ApiserverHungError as hung:
            say(f"    {hung}\n    once more, from nothing")
            return _start_afresh(layout, switches, parts)


def down(layout: Layout) -> None:
    """Remove the stage, in whatever state it is. Logs and the image store stay.

    Raises:
        StageError: something of it could not be removed.
    """
    _ask_for_root()
    with cache.lock(f"stage-{layout.name}"):
        node.stop(layout)
        _clear_state(layout, keep_logs=True)


@contextmanager
def borrowed(layout: Layout, switches: Switches | None = None) -> Iterator[Stage]:
    """The stage for a while: one that is up is used and put back as it was, else one comes up and goes again.

    Args:
        layout: of the stage.
        switches: what it must have; without, what it happens to have.

    Raises:
        StageError: it does not come up, or the one that is up would have to be started afresh for its audit log.
    """
    there = running(layout)
    if there and switches and switches.audit and not there.switches.audit:
        raise StageError(f"stage {layout.name} is up without its audit log: take it down first (`make stage-down`)")
    if not there:
        _refuse_another_cache(layout)  # before `down` below could end it
    wanted = switches or (there.switches if there else Switches())
    try:
        yield up(layout, replace(wanted, audit=there.switches.audit) if there else wanted)
    finally:
        if there:
            up(layout, there.switches)
        else:
            down(layout)


def running(layout: Layout) -> Stage | None:
    """The stage, if it is up and whole."""
    found = node.find(layout)
    try:
        record = json.loads(_record(layout).read_text())
        switches = Switches(**record["switches"])
        parts = Parts(**{name: Path(path) for name, path in record["parts"].items()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # not there, cut short, or of another version
        return None
    if not found:
        return None
    stage = Stage(layout, switches, parts, found)
    missing = missing_programs(stage)
    if missing or not stage.kubectl.ready():
        say(f"    the stage is there but not whole ({', '.join(missing) or 'the API server does not answer'})")
        return None
    return stage


def _ask_for_root() -> None:
    if os.geteuid() != 0:
        raise StageError("the stage makes network and mount namespaces: run this as root")


def _refuse_another_cache(layout: Layout) -> None:
    """A stage is found by its name on the whole machine; one that another cache folder holds is not ours to end."""
    found = node.find(layout)
    arguments = process_table.arguments(found.pid) if found else []
    if arguments and not Path(arguments[0]).resolve().is_relative_to(layout.root.resolve()):
        raise StageError(
            f"a stage of another cache folder is up ({arguments[0]}): take it down first (`make stage-down`)"
        )


def missing_programs(stage: Stage) -> list[str]:
    """Names of the programs that should run on the node and do not."""
    wanted = ["etcd", "kube-apiserver", "kube-controller-manager"]
    if stage.layout.with_node:
        wanted += ["containerd", "kube-scheduler", "kubelet", "kube-proxy"]
    wanted += ["coredns"] * stage.switches.dns + ["network-policy"] * stage.switches.network_policy
    there = stage.node.processes()
    return [name for name in wanted if name not in there]


def _start_afresh(layout: Layout, switches: Switches, parts: Parts) -> Stage:
    node.stop(layout)
    _clear_state(layout, keep_logs=False)
    with step(f"starting Kubernetes {golang.kubernetes_version()} ({layout.name})", "about 5 s"):
        _write_files(layout)
        stage = Stage(layout, Switches(audit=switches.audit), parts, node.start(layout))
        _start_control_plane(stage)
        if layout.with_node:
            _start_node_agents(stage)
            for image in (small_images.pause(), small_images.busybox()):
                stage.images.load(image)
        wait_for(
            "the default ServiceAccount",
            lambda: stage.kubectl.try_run("get", "serviceaccount", "default").returncode == 0,
            SERVICE_ACCOUNT_SECONDS,
        )
        return _switched(stage, switches)


def _write_files(layout: Layout) -> None:
    pki.write(layout)
    files = node_agents.files(layout) | {"Corefile": addons.corefile(layout)}
    for name, text in files.items():
        path = layout.state / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    control_plane.audit_policy_file(layout).write_text(control_plane.AUDIT_POLICY)


def _start_control_plane(stage: Stage) -> None:
    layout, parts = stage.layout, stage.parts
    etcd = programs.start(stage.node, control_plane.etcd(parts.etcd, layout))
    if layout.with_node:
        _start_containerd(stage)  # while etcd comes up
    etcd.wait_until("to listen", partial(process_table.listens, stage.node.pid, control_plane.ETCD_PORT), ETCD_SECONDS)
    program = control_plane.apiserver(parts.kubernetes, layout, audit=stage.switches.audit)
    apiserver = programs.start(stage.node, program)
    try:
        apiserver.wait_until("to be ready", stage.kubectl.ready, APISERVER_SECONDS)
    except StageError as error:
        if apiserver.process.poll() is not None:
            raise
        raise ApiserverHungError(str(error)) from error
    programs.start(stage.node, control_plane.controller_manager(parts.kubernetes, layout))


def _start_containerd(stage: Stage) -> None:
    """Start containerd with the images of earlier starts and without their containers, which were killed."""
    _containerd(stage, cri=False)
    stage.images.remove_containers()
    _end(stage, "containerd")
    _containerd(stage, cri=True)


def _containerd(stage: Stage, *, cri: bool) -> None:
    started = programs.start(stage.node, node_agents.containerd(stage.layout, cri=cri))
    started.wait_until("to answer", stage.images.answers, CONTAINERD_SECONDS)


def _start_node_agents(stage: Stage) -> None:
    layout, kubernetes = stage.layout, stage.parts.kubernetes
    programs.start(stage.node, control_plane.scheduler(kubernetes, layout))
    kubelet = programs.start(stage.node, node_agents.kubelet(kubernetes, layout))
    programs.start(stage.node, node_agents.kube_proxy(kubernetes, layout))
    kubelet.wait_until("to report the node Ready", lambda: _node_ready(stage.kubectl), NODE_READY_SECONDS)


def _node_ready(kubectl: Kubectl) -> bool:
    ran = kubectl.try_run("get", "node", NODE, "--output", "json", "--ignore-not-found")
    conditions = json.loads(ran.stdout)["status"]["conditions"] if ran.stdout.strip() else []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _switched(stage: Stage, switches: Switches) -> Stage:
    """The stage with DNS and NetworkPolicy as `switches` has them, and the record of it on disk."""
    there = stage.node.processes()
    if stage.layout.with_node:
        _switch_dns(stage, on=switches.dns, runs="coredns" in there)
        _switch_network_policy(stage, on=switches.network_policy, runs="network-policy" in there)
    elif switches.dns or switches.network_policy:
        raise StageError(f"stage {stage.layout.name} has no node, so it has neither DNS nor NetworkPolicy")
    record = {"switches": asdict(switches), "parts": _parts_record(stage.parts)}
    _record(stage.layout).write_text(json.dumps(record))
    return Stage(stage.layout, switches, stage.parts, stage.node)


def _switch_dns(stage: Stage, *, on: bool, runs: bool) -> None:
    if on and not runs:
        stage.kubectl.apply(addons.dns_objects(stage.layout))
        started = programs.start(stage.node, addons.coredns(stage.parts.addons, stage.layout))
        started.wait_until("to listen", partial(process_table.listens, stage.node.pid, addons.DNS_PORT), ADDON_SECONDS)
    elif runs and not on:
        _end(stage, "coredns")


def _switch_network_policy(stage: Stage, *, on: bool, runs: bool) -> None:
    if on and not runs:
        started = programs.start(stage.node, addons.network_policy(stage.parts.addons, stage.layout))
        started.wait_until("to write its rules", lambda: _has_policy_rules(stage.node), ADDON_SECONDS)
    elif runs and not on:
        _end(stage, "network-policy")
        stage.node.run("/bin/sh", "-ec", addons.REMOVE_POLICY_RULES)


def _end(stage: Stage, program: str) -> None:
    process_table.terminate(stage.node.processes()[program])
    wait_for(f"{program} to end", lambda: program not in stage.node.processes(), ADDON_SECONDS)


def _has_policy_rules(on: Node) -> bool:
    return addons.POLICY_CHAINS.split("|")[0] in on.run("iptables-save", "-t", "filter")


def _record(layout: Layout) -> Path:
    """Written last: without it, what is there counts as half up."""
    return layout.state / "stage.json"


def _parts_record(parts: Parts) -> dict[str, str]:
    return {name: str(path) for name, path in asdict(parts).items()}


def _clear_state(layout: Layout, *, keep_logs: bool) -> None:
    if not layout.state.exists():
        return
    for entry in layout.state.iterdir():
        if keep_logs and entry == layout.logs:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
