"""Get at what runs in a pod from this machine: its processes, and its network."""

from __future__ import annotations

import ctypes
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from e2e.cluster import process_table
from e2e.errors import StageError

if TYPE_CHECKING:
    from pathlib import Path

CLONE_NEWNET = 0x40000000


def processes(identity: str) -> list[int]:
    """The processes of a pod, or of one container: those whose control group is named after it.

    Args:
        identity: UID of the pod, or id of the container without what stands before its `//`.
    """
    return sorted(pid for pid in process_table.pids() if identity in _cgroup(pid))


def network(pid: int) -> Path:
    """The network that a process is in, for `connect`."""
    return process_table.PROC / str(pid) / "ns" / "net"


def connect(address: str, port: int, through: Path | None, seconds: float) -> socket.socket:
    """Connect from another network than this machine's. A socket stays in the network that it was made in.

    Args:
        address: IP address.
        port: of TCP.
        through: the network from which; this machine's own without.
        seconds: how long it may take, and then each read and write, until its owner says otherwise.

    Raises:
        OSError: there is no connection.
        StageError: the network could not be entered.
    """
    if through is None:
        return socket.create_connection((address, port), seconds)
    with ThreadPoolExecutor(1) as one:  # only the thread moves, and it ends
        return one.submit(_connect_from, through, address, port, seconds).result()


def _connect_from(through: Path, address: str, port: int, seconds: float) -> socket.socket:
    libc = ctypes.CDLL(None, use_errno=True)
    with through.open() as file:
        if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
            raise StageError(f"cannot enter the network {through}: {os.strerror(ctypes.get_errno())}")
    return socket.create_connection((address, port), seconds)


def _cgroup(pid: int) -> str:
    try:
        return (process_table.PROC / str(pid) / "cgroup").read_text()
    except OSError:  # it has ended
        return ""
