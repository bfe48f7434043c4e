"""Performs what was asked for: runs it, prints it, and says how to end, also when it is stopped half way."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from kvfence.cli.canary.as_json import as_json
from kvfence.cli.canary.junit import as_junit
from kvfence.cli.canary.report import ExitCode, Output
from kvfence.cli.canary.running import Course, Screen, examine
from kvfence.cli.canary.table import show
from kvfence.cli.output import console, draw, note, write

if TYPE_CHECKING:
    from kvfence.cli.canary.asked import Asked
    from kvfence.cli.canary.report import Report

GUESSABLE = "Markers of a --seed can be guessed by whoever knows it: use it only where nobody else asks."


def perform(asked: Asked, output: Output) -> ExitCode:
    """Run it and print what came of it; after Ctrl-C, what had come by then.

    Raises:
        WrongUsageError: the user named something else than what is there.
    """
    report = _examined(asked)
    match output:
        case Output.JSON:
            write(as_json(report))
        case Output.JUNIT:
            write(as_junit(report))
        case Output.TABLE:
            draw(lambda screen: show(report, screen))
    return report.exit_code


def _examined(asked: Asked) -> Report:
    course = Course(asked)
    if asked.seed is not None:
        note(GUESSABLE)
        course.notes = (GUESSABLE,)
    drawing = console(sys.stderr)
    try:
        asyncio.run(examine(course, Screen(drawing, drawing.is_terminal and sys.stderr.isatty())))
    except KeyboardInterrupt:
        return course.report(interrupted=True)
    return course.report()
