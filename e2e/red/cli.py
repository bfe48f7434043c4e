"""Command line of the defences."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from e2e import progress
from e2e.errors import StageError
from e2e.red import table, trial
from e2e.red.defences import DefenceError, Level, chosen, read_all

WIDTH_WITHOUT_TERMINAL = 180
ROOT = Path(__file__).resolve().parents[2]


def show(
    names: Annotated[list[str] | None, typer.Argument(help="Which defences; all of a level without.")] = None,
    *,
    stage: Annotated[bool, typer.Option("--stage", help="Those whose tests need the stage or real engines.")] = False,
) -> None:
    """Take each defence out of a copy of the checkout: does one of its tests go red?"""
    began = time.monotonic()
    try:
        defences = chosen(read_all(ROOT), tuple(names or ()), Level.STAGE if stage else Level.FAST)
        trial.make_sure_that_all_is_green(ROOT, defences)
        results = trial.try_all(ROOT, defences)
    except (DefenceError, StageError, OSError) as error:  # OSError: a full disk, a folder that may not be written
        progress.say(f"error: {error}")
        sys.exit(1)
    table.show(results, Console() if sys.stdout.isatty() else Console(width=WIDTH_WITHOUT_TERMINAL))
    progress.say(f"    in all: {progress.clock(time.monotonic() - began)}")
    if any(result.outcome is not trial.Outcome.RED for result in results):
        sys.exit(1)


def main() -> None:
    """Run the command."""
    typer.run(show)
