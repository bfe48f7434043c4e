"""Run a program to its end. What goes wrong is a `StageError` that says what failed and in which words."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from e2e.errors import StageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SAID_CHARACTERS = 4000


def run(
    *command: str,
    folder: Path | None = None,
    settings: Mapping[str, str] | None = None,
    given: bytes = b"",
    seconds: float | None = None,
    shown: str = "",
) -> str:
    """Run `command` and return what it printed.

    Args:
        command: program and arguments.
        folder: where it runs.
        settings: environment variables, beside those of this process.
        given: its standard input.
        seconds: how long it may take; no limit without.
        shown: what an error calls it, where the command itself is long or holds what must not be shown.

    Raises:
        StageError: it is not installed, failed, or took too long.
    """
    name = shown or f"`{' '.join(command)}`"
    try:
        ran = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | dict(settings or {}),
            input=given,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError as error:
        raise StageError(f"{name} could not be run: {error.filename} is not there") from error
    except subprocess.TimeoutExpired as late:
        raise StageError(f"{name} did not end in {seconds:.0f} s") from late
    if ran.returncode != 0:
        said = (ran.stderr.strip() or ran.stdout.strip()).decode(errors="replace")
        raise StageError(f"{name} failed: {said[-SAID_CHARACTERS:] or f'exit code {ran.returncode}'}")
    return ran.stdout.decode(errors="replace")


def without_proxies() -> dict[str, str]:
    """This process's environment without proxies: what talks to the stage must not ask the world outside for it."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
