"""A network of pods without a node: each has an address of its own, on which a test listens.

The operator asks fixed ports of the pods' addresses, and serves its own on all addresses that it has. So the pods are
in one network namespace and the operator in another, as in a cluster, and no port of this machine is needed.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from e2e import commands

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.cluster.node import Node

PREFIX = "198.18.1"
"""Of the block that is reserved for tests; the stage has 198.18.0.0/24."""
LINK = "kvf-pods"
_CLONE_NEWNET = 0x40000000


@dataclass
class PodNetwork:
    """The pods' network namespace. It ends with its keeper, and so when the test process ends, whatever its end."""

    keeper: subprocess.Popen[bytes]
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(129))

    def address(self) -> str:
        """Return an address that no pod has had."""
        return f"{PREFIX}.{next(self._numbers)}"

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Have sockets that this thread makes meanwhile belong to the pods' network."""
        libc = ctypes.CDLL(None, use_errno=True)
        with Path("/proc/thread-self/ns/net").open() as ours, Path(f"/proc/{self.keeper.pid}/ns/net").open() as theirs:
            _enter(libc, theirs.fileno())
            try:
                yield
            finally:
                _enter(libc, ours.fileno())


def _enter(libc: ctypes.CDLL, namespace: int) -> None:
    if libc.setns(namespace, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), f"cannot enter a network: {os.strerror(ctypes.get_errno())}")


@contextmanager
def joined_to(node: Node) -> Iterator[PodNetwork]:
    """Make a network whose addresses are reached from the node's; all of them are there at once."""
    # `cat` ends when this process does: the pipe closes
    command = ["unshare", "--net", "sh", "-c", "echo; exec cat"]
    keeper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    try:
        keeper.stdout.readline()  # the namespace is there
        node_ip, pods_ip = (["nsenter", "--target", str(pid), "--net", "ip"] for pid in (node.pid, keeper.pid))
        veth = ("link", "add", LINK, "type", "veth", "peer", "name", "eth0", "netns", str(keeper.pid))
        commands.run(*node_ip, *veth)
        commands.run(*node_ip, "addr", "add", f"{PREFIX}.1/24", "dev", LINK)
        commands.run(*node_ip, "link", "set", LINK, "up")
        commands.run(*pods_ip, "link", "set", "lo", "up")
        commands.run(*pods_ip, "addr", "add", f"{PREFIX}.2/24", "dev", "eth0")
        commands.run(*pods_ip, "link", "set", "eth0", "up")
        commands.run(*pods_ip, "route", "add", "local", f"{PREFIX}.128/25", "dev", "lo")
        yield PodNetwork(keeper)
    finally:
        keeper.stdin.close()
        keeper.wait()
        keeper.stdout.close()
