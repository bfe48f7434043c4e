"""`python -m e2e.by_hand` prints docs/verdicts.md anew; with `record FOLDER` it records what servers say."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from e2e import progress
from e2e.by_hand import command, playing, recording, routers, table
from e2e.cluster import packages
from e2e.errors import StageError

if TYPE_CHECKING:
    from e2e.by_hand.playing import Seen

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def verdicts(context: typer.Context) -> None:
    """Start everything by hand, let kvfence look at it, and print the page of verdicts."""
    if context.invoked_subcommand is not None:
        return
    packages.install(packages.MOONCAKE_PACKAGES)
    seen: list[Seen] = []
    with tempfile.TemporaryDirectory(prefix="kvfence-by-hand-") as name:
        folder = Path(name)
        kvfence = command.install(folder)
        for up in playing.groups(folder):
            seen.extend(playing.play(up, kvfence, folder, whole=True))
    sys.stdout.write(table.page(seen))


@app.command()
def build() -> None:
    """Install the routers, and what the command asks for; does nothing when they are there."""
    command.asked_for()
    for router in routers.Router:
        routers.packages(router)


@app.command()
def record(folder: Annotated[Path, typer.Argument(help="tests/field/real has what is in use.")]) -> None:
    """Start everything by hand, and write what servers and routers say and log into a folder."""
    packages.install(packages.MOONCAKE_PACKAGES)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kvfence-by-hand-") as logs:
        for up in playing.groups(Path(logs)):
            recording.record(up, Path(logs), folder)


try:
    app()
except (StageError, OSError) as error:
    progress.say(f"error: {error}")
    sys.exit(1)
