"""What Kubernetes shows of an engine that ended: the termination log, a file that the kubelet reads.

When that file is empty and the status is not 0, the kubelet copies the end of the container's log into the pod's
status (`FallbackToLogsOnError`). Before an admission that is what a person needs. Afterwards the log may hold what
users asked, so something stands in the file from the first admission on: even a launcher that is killed together with
its engine leaves no gap.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

KILLED = "kvfence-engine: the container was killed after it had been admitted; see the log of the container"


class TerminationLog:
    """The file, if there is one. That it cannot be written is said on standard error, and changes nothing else.

    Args:
        path: of the file, as the kubelet knows it; none for a container without.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._was_admitted = False  # not read from the state: the engine can write there too

    def admitted(self) -> None:
        """Leave no room for the end of the log from here on."""
        self._was_admitted = True
        self._write(KILLED)

    def ended(self, status: int, fault: str) -> None:
        """Say how it ended.

        Args:
            status: what the container exits with.
            fault: the reason that a process of the engine left, empty when none did.
        """
        if self._was_admitted:
            said = f"kvfence-engine: SGLang ended with status {status} after it had been admitted"
            self._write(f"{said}; see the log of the container" if status else "")
        elif status and fault:
            self._write(not_run(fault))

    def _write(self, line: str) -> None:
        if self._path is None:
            return
        try:
            self._path.write_text(f"{line}\n" if line else "")
        except OSError as error:
            print(f"kvfence-engine: cannot write the termination log: {error}", file=sys.stderr, flush=True)  # noqa: T201


def not_run(fault: str) -> str:
    """Return the line about an engine that refused to run."""
    return f"kvfence-engine: the engine did not run: {fault}"
