"""Command line of the model."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from e2e import progress
from e2e.errors import StageError
from e2e.model import checker, page
from e2e.model.checker import Found
from e2e.model.defences import WITH_ALL


def is_as_it_should_be(found: Found) -> bool:
    """Return whether a search came to what it should: nothing with all defences, something with one less."""
    return bool(found.violation) is (found.search != WITH_ALL)


def show(write: Annotated[bool, typer.Option("--write", help="Write docs/model.md anew.")] = False) -> None:
    """Search the model with all defences, with each one off, and with none."""
    began = time.monotonic()
    try:
        found = checker.search_all()
    except (StageError, OSError) as error:  # OSError: a full disk, a folder that may not be written
        progress.say(f"error: {error}")
        sys.exit(2)
    print(f"{'defences on':<18} {'found':<36} {'states':>11} {'depth':>6} {'seconds':>8}")
    for one in found:
        print(f"{one.search.name:<18} {page.result(one):<36} {one.states:>11,} {one.depth:>6} {one.seconds:>8.1f}")
    progress.say(f"    in all: {progress.clock(time.monotonic() - began)}")
    if write:
        page.PAGE.path.write_text(page.PAGE.with_part(page.PAGE.path.read_text(), page.text(found)))
    if wrong := [one.search.name for one in found if not is_as_it_should_be(one)]:
        progress.say(f"error: not what it should be, with the defences on: {'; '.join(wrong)}")
        sys.exit(1)


def main() -> None:
    """Run the command."""
    typer.run(show)
