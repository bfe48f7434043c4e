"""Start processes that outlive the command which starts them."""

from __future__ import annotations

import atexit
import subprocess
from typing import TYPE_CHECKING

from e2e.commands import without_proxies

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# Python complains when it forgets a child that still runs, and a child that nobody asks after stays a zombie.
_started: list[subprocess.Popen[bytes]] = []


def start(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start `command` in a session of its own, its output appended to `log`; reap those that have ended."""
    _started[:] = [child for child in _started if child.poll() is None]
    with log.open("ab") as handle:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=handle,
            stderr=handle,
            env=without_proxies(),  # Kubernetes' own clients would ask a proxy for the API server
            start_new_session=True,
        )
    _started.append(child)
    return child


@atexit.register
def _let_go() -> None:
    """Take note of those that have ended; the others are to live on, and Python need not complain of that."""
    for child in _started:
        if child.poll() is None:
            child.returncode = 0
