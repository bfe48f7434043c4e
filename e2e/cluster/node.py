"""The node: namespaces of its own for processes, mounts and network, so that the kernel clears it away.

Everything of a stage descends from one process, the first of its process namespace. When that one dies, by `down` or
by kill -9, the kernel ends all the others, and with the last of them go the mounts, the network namespaces of pods, the
link to this machine and its routes. No list of process ids is kept, so none can be stale or name a stranger: the
process table is the record, and `find` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from e2e import commands
from e2e.cluster import cgroups, children, golang, process_table
from e2e.cluster.layout import POD_CIDR, SERVICE_CIDR
from e2e.cluster.waiting import wait_for
from e2e.errors import StageError

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence

    from e2e.cluster.layout import Layout

# What the kubelet writes when it starts, for the whole machine. It finds it written already, in files of the node's own
# that lie over the real ones, so this machine's values stay as they are.
KERNEL_SETTINGS = {
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1000000,
    "kernel/keys/root_maxbytes": 25000000,
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
}
# Folders in which containerd, runc, CNI and the kubelet write whatever they are told: empty ones of the node's own.
PRIVATE_FOLDERS = ("/run", "/var/lib", "/var/log")
BRIDGE_SETTING = "net/bridge/bridge-nf-call-iptables"
NETWORK_SETTINGS = ("net/ipv4/ip_forward", BRIDGE_SETTING, "net/ipv4/conf/all/route_localnet")
GONE_WITHIN_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Node:
    """A running node."""

    layout: Layout
    pid: int
    """Of its first process, as this machine sees it."""

    def command(self, arguments: Sequence[str]) -> list[str]:
        """The command line that runs `arguments` on the node.

        `nsenter`, not `ip netns exec`, which mounts a fresh /sys and hides the cgroups. It changes to `/`: give
        absolute paths.
        """
        return ["nsenter", "--target", str(self.pid), "--net", "--mount", "--pid", "--ipc", "--uts", "--", *arguments]

    def run(self, *arguments: str, seconds: float = 120.0, given: bytes = b"") -> str:
        """Run a command on the node to its end and return what it printed.

        Raises:
            StageError: it failed, with what it said.
        """
        return commands.run(*self.command(arguments), given=given, seconds=seconds, shown=f"`{' '.join(arguments)}`")

    def processes(self) -> dict[str, int]:
        """Programs that run on the node, outside of pods: name to process id as this machine sees it."""
        others = (pid for pid in _inhabitants(self.pid) if pid != self.pid)
        return {Path(arguments[0]).name: pid for pid in others if (arguments := process_table.arguments(pid))}


def find(layout: Layout) -> Node | None:
    """The running node of this stage, if there is one. One that is still being set up is not there yet."""
    for pid in _holders(layout):
        program = "".join(process_table.arguments(pid)[:1])  # none if it ended just now
        if process_table.pid_inside(pid) == 1 and Path(program).name == golang.INIT:
            return Node(layout, pid)
    return None


def start(layout: Layout) -> Node:
    """Make the namespaces and the link to them.

    Raises:
        StageError: the cache folder is in the way, or the kernel refused; the message says which.
    """
    hidden = [folder for folder in PRIVATE_FOLDERS if layout.root.resolve().is_relative_to(folder)]
    if hidden:
        raise StageError(
            f"the cache folder {layout.root} lies in {hidden[0]}: set KVFENCE_STAGE_CACHE to another place"
        )
    layout.logs.mkdir(parents=True, exist_ok=True)
    if layout.with_node:
        cgroups.make()
    # --kill-child: without its keeper the node ends too
    keeper = ["unshare", "--net", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "--mount-proc"]
    program = golang.init() / golang.INIT
    set_up = ["/bin/sh", "-ec", _set_up(), str(program), layout.name]
    process = children.start([*keeper, "--propagation", "private", *set_up], layout.logs / "node.log")
    node = _await_start(layout, process)
    _connect(node)
    return node


def stop(layout: Layout) -> None:
    """End the node and all that runs on it, however much of it is left; nothing to do is fine.

    Raises:
        StageError: something of it could not be removed.
    """
    holders, entrances = _holders(layout), _entrances(layout)
    inside = [other for pid in holders if process_table.pid_inside(pid) == 1 for other in _inhabitants(pid)]
    for pid in holders:
        process_table.kill(pid)
    ending = sorted({*holders, *inside, *entrances})

    def ended() -> bool:
        # An `nsenter` whose program was stopped has stopped itself. It holds the network, and until it has taken note
        # of its program's end, the first process cannot end either.
        for pid in entrances:
            process_table.go_on(pid)
        return not any(map(process_table.alive, ending))

    wait_for(f"processes {ending} to end", ended, GONE_WITHIN_SECONDS, every=0.02)
    # the kernel removes the link a moment after the last process
    interface = Path("/sys/class/net") / layout.link
    wait_for(f"network link {layout.link} to go", lambda: not interface.exists(), GONE_WITHIN_SECONDS, every=0.02)
    if layout.with_node:
        cgroups.remove()


def _set_up() -> str:
    """Shell script that the node's first process runs, as root in the new namespaces, before it becomes `init`."""
    settings = "/run/kernel-settings"
    lines = [
        "mount --make-rshared /",  # the kubelet wants mounts of volumes to reach containers
        *(f"mount -t tmpfs -o mode=755 tmpfs {folder}" for folder in PRIVATE_FOLDERS),
        f"mkdir {settings}",
    ]
    for number, (name, value) in enumerate(KERNEL_SETTINGS.items()):
        lines += [f"echo {value} > {settings}/{number}", f"mount --bind {settings}/{number} /proc/sys/{name}"]
    lines.append(f"[ -e /proc/sys/{BRIDGE_SETTING} ] || modprobe br_netfilter")  # nothing else loads it
    lines += ["ip link set lo up", *(f"echo 1 > /proc/sys/{name}" for name in NETWORK_SETTINGS)]
    return "\n".join([*lines, 'exec "$0" "$1"'])


def _await_start(layout: Layout, process: subprocess.Popen[bytes]) -> Node:
    def up() -> bool:
        if process.poll() is not None:
            said = (layout.logs / "node.log").read_text(errors="replace").strip()
            raise StageError(f"the node's namespaces could not be made: {said or 'unshare says nothing'}")
        return find(layout) is not None

    wait_for("the node's first process", up, GONE_WITHIN_SECONDS, every=0.02)
    node = find(layout)
    if node is None:
        raise StageError(f"the node's first process ended at once: see {layout.logs / 'node.log'}")
    return node


def _connect(node: Node) -> None:
    """Join the node to this machine by a link, with routes to pods and Services.

    No default route on the node: with one, the kubelet waits for name servers that are not there (2:40 until Ready).
    """
    layout = node.layout
    commands.run("ip", "link", "add", layout.link, "type", "veth", "peer", "name", "eth0", "netns", str(node.pid))
    commands.run("ip", "addr", "add", f"{layout.host_address}/30", "dev", layout.link)
    commands.run("ip", "link", "set", layout.link, "up")
    node.run("ip", "addr", "add", f"{layout.node_address}/30", "dev", "eth0")
    node.run("ip", "link", "set", "eth0", "up")
    if layout.with_node:
        for destination in (POD_CIDR, SERVICE_CIDR):
            commands.run("ip", "route", "replace", destination, "via", layout.node_address)


def _holders(layout: Layout) -> list[int]:
    """Processes that hold the namespaces of this stage: the keeper, and `init`, which ends with it in any phase."""
    return [
        pid
        for pid in process_table.pids()
        if len(arguments := process_table.arguments(pid)) >= 2
        and Path(arguments[-2]).name == golang.INIT
        and arguments[-1] == layout.name
        and Path(arguments[0]).name in {golang.INIT, "unshare"}
    ]


def _entrances(layout: Layout) -> list[int]:
    """`nsenter` processes that wait for a program of this stage: in the node's network, but not among its processes."""
    return [
        pid
        for pid in process_table.pids()
        if (arguments := process_table.arguments(pid))
        and Path(arguments[0]).name == "nsenter"
        and any(f"{layout.state}/" in argument for argument in arguments)
    ]


def _inhabitants(pid: int) -> list[int]:
    """Processes in the same process namespace; those of pods have namespaces below it and end with it."""
    namespace = process_table.pid_namespace(pid)
    if not namespace:  # gone already
        return []
    return [other for other in process_table.pids() if process_table.pid_namespace(other) == namespace]
