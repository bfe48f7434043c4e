"""A program of the stage: what it is called with, and that it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from e2e.cluster import children
from e2e.cluster.waiting import wait_for
from e2e.errors import StageError

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from e2e.cluster.node import Node

LOG_LINES_SHOWN = 15


@dataclass(frozen=True, slots=True)
class Program:
    """Something to start on the node. Its log is named after the last part of its path."""

    path: Path
    flags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """As the process table shows it."""
        return self.path.name


@dataclass(frozen=True, slots=True)
class StartedProgram:
    """A program that was started by this process."""

    program: Program
    log: Path
    process: subprocess.Popen[bytes]

    def wait_until(self, what: str, ready: Callable[[], bool], seconds: float) -> None:
        """Wait until it is `ready`.

        Raises:
            StageError: it ended, or is not ready in time; the message has the end of its log.
        """

        def still_running_and_ready() -> bool:
            code = self.process.poll()
            if code is not None:
                raise StageError(f"{self.program.name} ended with exit code {code}")
            return ready()

        try:
            wait_for(f"{self.program.name} {what}", still_running_and_ready, seconds)
        except StageError as error:
            raise StageError(f"{error}\n{self.log}:\n{tail(self.log)}") from None


def start(node: Node, program: Program) -> StartedProgram:
    """Start `program` on the node, in a session of its own: it outlives the command that started it."""
    log = node.layout.logs / f"{program.name}.log"
    process = children.start(node.command([str(program.path), *program.flags]), log)
    return StartedProgram(program, log, process)


def tail(log: Path, lines: int = LOG_LINES_SHOWN) -> str:
    """The last lines of a log, cut to what a person reads."""
    try:
        text = log.read_bytes()[-64_000:].decode(errors="replace")
    except FileNotFoundError:
        return "    (no log)"
    return "\n".join(f"    {line[:300]}" for line in text.splitlines()[-lines:]) or "    (empty)"
