"""What a stage could leave on this machine: looked at before it comes up and after it is gone."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, fields
from pathlib import Path

from e2e.cluster import process_table
from e2e.cluster.node import KERNEL_SETTINGS

NETWORK_SETTINGS = (
    "net/ipv4/ip_forward",
    "net/ipv4/conf/all/route_localnet",
    "net/netfilter/nf_conntrack_max",
    "net/bridge/bridge-nf-call-iptables",
)
# folders into which the parts of a cluster write by habit, looked at to their full depth
HABITUAL = ("/run", "/etc/cni", "/var/lib/cni", "/var/lib/kubelet", "/var/lib/containerd", "/var/log/pods")
SHALLOW = ("/", "/etc", "/opt", "/tmp", "/dev/shm", "/var/lib", "/var/log")  # noqa: S108 - looked at, not written to


@dataclass(frozen=True, slots=True)
class Machine:
    """The parts of a machine's state that outlive processes, each as a set of readable lines."""

    orphans: frozenset[str]
    namespaces: frozenset[str]
    mounts: frozenset[str]
    network: frozenset[str]
    firewall: frozenset[str]
    cgroups: frozenset[str]
    settings: frozenset[str]
    files: frozenset[str]


def look() -> Machine:
    """Read the state of this machine."""
    return Machine(
        orphans=frozenset(_orphans()),
        namespaces=frozenset(_namespaces()),
        mounts=frozenset(line.split(" ", 3)[3] for line in Path("/proc/self/mountinfo").read_text().splitlines()),
        network=frozenset(_printed("ip", "-o", "link") | _printed("ip", "-o", "route") | _printed("ip", "netns")),
        firewall=frozenset(_printed("iptables-save") | _printed("ipset", "list", "-name")),
        cgroups=frozenset(folder for folder, _, _ in os.walk("/sys/fs/cgroup")),
        settings=frozenset(_settings()),
        files=frozenset(_files()),
    )


def difference(before: Machine, after: Machine) -> dict[str, list[str]]:
    """What is there after and was not before (`+`), or is gone (`-`), by kind; empty when nothing is."""
    changed = {}
    for kind in (one.name for one in fields(Machine)):
        was: frozenset[str] = getattr(before, kind)
        now: frozenset[str] = getattr(after, kind)
        lines = [f"+ {line}" for line in sorted(now - was)] + [f"- {line}" for line in sorted(was - now)]
        if lines:
            changed[kind] = lines
    return changed


def _orphans() -> set[str]:
    """Processes whose parent is gone: what a command left running. Those of other work on this machine have parents."""
    found = set()
    for pid in process_table.pids():
        arguments = process_table.arguments(pid)
        if arguments and _parent(pid) == 1:
            found.add(f"{pid} {' '.join(arguments)[:200]}")
    return found


def _parent(pid: int) -> int:
    try:
        stat = (process_table.PROC / str(pid) / "stat").read_text()
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[1])


def _namespaces() -> set[str]:
    """Namespaces that any process is in."""
    found = set()
    for pid in filter(process_table.alive, process_table.pids()):  # one that waits to be reaped holds nothing
        for kind in ("net", "mnt", "pid"):
            try:
                found.add(str((process_table.PROC / str(pid) / "ns" / kind).readlink()))
            except OSError:
                continue
    return found


def _printed(*command: str) -> set[str]:
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    # iptables-save prints the time and packet counters
    return {line.partition(" [")[0] for line in lines if not line.startswith("#")}


def _settings() -> set[str]:
    found = set()
    for name in (*KERNEL_SETTINGS, *NETWORK_SETTINGS):
        path = process_table.PROC / "sys" / name
        found.add(f"{name}={path.read_text().strip() if path.exists() else 'absent'}")
    return found


def _files() -> set[str]:
    found = {f"{folder.rstrip('/')}/{entry.name}" for folder in SHALLOW for entry in os.scandir(folder)}
    for top in HABITUAL:
        for folder, folders, files in os.walk(top):
            found.update(f"{folder}/{name}" for name in (*folders, *files))
    return found
