"""Read this machine's process table. A process may end between two looks: what is gone reads as empty."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

PROC = Path("/proc")
TCP_LISTEN = "0A"  # include/net/tcp_states.h


def pids() -> list[int]:
    """All process ids."""
    return [int(entry.name) for entry in PROC.iterdir() if entry.name.isdecimal()]


def arguments(pid: int) -> list[str]:
    """The command line."""
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def pid_namespace(pid: int) -> str:
    """Identity of the process namespace that the process is in."""
    try:
        return str((PROC / str(pid) / "ns" / "pid").readlink())
    except OSError:
        return ""


def pid_inside(pid: int) -> int:
    """The process id as the process itself sees it; 0 for one that is gone."""
    try:
        status = (PROC / str(pid) / "status").read_text(errors="replace")
    except OSError:
        return 0
    return next((int(line.split()[-1]) for line in status.splitlines() if line.startswith("NSpid:")), 0)


def alive(pid: int) -> bool:
    """Whether it is there and not just waiting to be reaped."""
    try:
        stat = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def listens(pid: int, port: int) -> bool:
    """Whether anything in the network namespace of the process accepts TCP connections on this port."""
    rows = []
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            rows += (PROC / str(pid) / "net" / table).read_text().splitlines()[1:]
    listening = (columns for row in rows if (columns := row.split())[3] == TCP_LISTEN)
    return any(int(columns[1].rpartition(":")[2], 16) == port for columns in listening)


def kill(pid: int) -> None:
    """End it at once, if it is still there."""
    _signal(pid, signal.SIGKILL)


def terminate(pid: int) -> None:
    """Ask it to end, if it is still there."""
    _signal(pid, signal.SIGTERM)


def go_on(pid: int) -> None:
    """Let it run again, if it is still there and was stopped."""
    _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
