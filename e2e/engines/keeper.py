"""Runs one command and sees to it that nothing of it is left when it ends, or when whoever wanted it is gone.

usage: python keeper.py COMMAND ARGUMENT ...     standard input: a pipe that the wanting process holds open

An SGLang server is a tree of processes, some of which outlive their parent when that is killed. So the keeper
- ends the command when the pipe closes, which the kernel sees to also when the wanting process dies of `kill -9`;
- is the one to whom the kernel hands every orphan below it (`PR_SET_CHILD_SUBREAPER`), whatever group it is in;
- kills all that is below it until nothing is, takes away the shared memory that this leaves in `/dev/shm`, and only
  then ends itself.
Should the keeper itself be killed, the command's first process goes with it (`PR_SET_PDEATHSIG`), and SGLang's own
processes ask for the same.
The command gets a temporary folder of its own, which is removed: SGLang leaves its sockets behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
STDIN = 0
LOOK_SECONDS = 3.0  # between looks at who has which shared memory: once a process is gone nobody can tell
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the place itself, no file of ours in it


def keep(command: list[str]) -> int:
    """Run `command` to its end, or until standard input closes; return its exit status, 128 + N for signal N."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot become the parent of orphans")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    folder = tempfile.mkdtemp(prefix="kvfence-", dir="/tmp")  # short: the paths of sockets are limited
    shared: set[int] = set()
    try:
        main = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"TMPDIR": folder},
            preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),  # noqa: PLW1509 - one thread
        )
        ended = os.pidfd_open(main.pid)
        while not select.select([STDIN, ended], [], [], LOOK_SECONDS)[0]:
            shared |= _shared_memory(_below(os.getpid()))
        status = main.poll()
        return 0 if status is None else status if status >= 0 else 128 - status
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not end the cleaning
        shared |= _shared_memory(_below(os.getpid()))
        _kill_all_below()
        _remove(shared)
        shutil.rmtree(folder, ignore_errors=True)


def _kill_all_below() -> None:
    """Kill what is below until nothing is: who loses its parent is handed to us."""
    while below := _below(os.getpid()):
        for pid in below:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


def _below(pid: int) -> list[int]:
    """Return the children of a process, theirs, and so on; those that nobody has waited for are in it."""
    children: list[int] = []
    with contextlib.suppress(OSError):  # it may be gone
        for thread in Path(f"/proc/{pid}/task").iterdir():
            children += [int(child) for child in (thread / "children").read_text().split()]
    return children + [grandchild for child in children for grandchild in _below(child)]


def _shared_memory(pids: list[int]) -> set[int]:
    """Return the inodes in /dev/shm that the processes have mapped: their own, as servers share none with each other.

    Not the paths: a semaphore is mapped under a name that it loses at once.
    """
    device = SHARED_MEMORY.stat().st_dev
    where = f"{os.major(device):02x}:{os.minor(device):02x}"
    mapped: set[int] = set()
    for pid in pids:
        with contextlib.suppress(OSError):  # it may be gone
            lines = [line.split(maxsplit=5) for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
            mapped |= {int(inode) for _, _, _, mapped_from, inode, *_ in lines if mapped_from == where}
    return mapped - {0}


def _remove(shared: set[int]) -> None:
    for path in SHARED_MEMORY.iterdir():
        with contextlib.suppress(OSError):  # its owner may remove it too
            if path.stat().st_ino in shared:
                path.unlink()


if __name__ == "__main__":
    sys.exit(keep(sys.argv[1:]))
