"""Command line of the incident."""

from __future__ import annotations

import asyncio
import random
import secrets
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from e2e import progress
from e2e.cluster import packages, stage
from e2e.cluster.layout import STAGE
from e2e.engines import images, on_stage, processes
from e2e.engines.servers import Reached
from e2e.errors import StageError
from e2e.incident import scenario, table, verdict
from e2e.incident.cast import SERVERS

WIDTH_WITHOUT_TERMINAL = 140


class Ground(StrEnum):
    """What the servers run as."""

    PODS = "pods"
    PROCESSES = "processes"


def play(on: Ground) -> tuple[scenario.Seen, ...]:
    """Start all servers, play all scenes, stop all servers.

    Raises:
        StageError: SGLang could not be installed, or the stage or a server did not come up.
    """
    with ExitStack() as running:
        if on is Ground.PROCESSES:
            packages.install(packages.MOONCAKE_PACKAGES)
            logs = running.enter_context(tempfile.TemporaryDirectory(prefix="kvfence-incident-"))
            servers: Sequence[Reached] = running.enter_context(processes.running(SERVERS, Path(logs)))
        else:
            images.build()
            up = running.enter_context(stage.borrowed(STAGE))
            namespace = f"incident-{secrets.token_hex(3)}"
            servers = running.enter_context(on_stage.running(up, SERVERS, namespace))
        with progress.step("playing the incident", "about 15 s"):
            return asyncio.run(scenario.play_all(servers, random.SystemRandom()))


def show(on: Annotated[Ground, typer.Option(help="What the servers run as.")] = Ground.PODS) -> None:
    """Play the incident on real SGLang pairs: whose words are in the answers to user B?"""
    began = time.monotonic()
    try:
        played = play(on)
    except (StageError, OSError) as error:  # OSError: a full disk, a folder that may not be written
        progress.say(f"error: {error}")
        sys.exit(2)
    table.show(played, Console() if sys.stdout.isatty() else Console(width=WIDTH_WITHOUT_TERMINAL))
    progress.say(f"    in all: {progress.clock(time.monotonic() - began)}")
    if not verdict.was_shown(played):
        progress.say("The leak was not seen this time. That is a fault of this demonstration: the engine has it.")
        sys.exit(1)


def main() -> None:
    """Run the command."""
    typer.run(show)
