"""Where commands write: standard output for what was asked for, standard error for all else."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, TextIO

from kvfence.engine.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

WITHOUT_TERMINAL = 80
"""Columns where there is no terminal to ask and COLUMNS says nothing."""


class Format(StrEnum):
    """How a command prints what it has to say."""

    TABLE = "table"
    JSON = "json"


class ReaderGoneError(Exception):
    """Whoever read standard output went away. No OSError: click would end the process with 1, which is a finding."""


def write(text: str) -> None:
    """Write to standard output.

    Raises:
        ReaderGoneError: whoever read it went away.
        OSError: it takes no more; `kvfence.cli.program` has the words for that.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise ReaderGoneError from error


def note(text: str) -> None:
    """Write a line for people to standard error."""
    sys.stderr.write(f"kvfence: {printable(text)}\n")
    sys.stderr.flush()


def console(stream: TextIO) -> Console:
    """Return what draws tables on a stream: with colours on a terminal, or where FORCE_COLOR asks for them.

    NO_COLOR wins over FORCE_COLOR, and then there is no escape sequence at all.
    """
    from rich.console import Console  # noqa: PLC0415 - takes 100 ms to import, which --help does not need

    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    forced = os.environ.get("FORCE_COLOR", "") not in {"", "0"}
    coloured = not plain and (forced or stream.isatty())
    return Console(
        file=stream,
        width=_columns(stream),
        force_terminal=coloured,
        no_color=not coloured,
        color_system="standard" if coloured else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        force_interactive=False,
    )


def draw(show: Callable[[Console], None]) -> None:
    """Draw on standard output. rich itself would end the process, with 1, when whoever reads it is gone.

    Raises:
        OSError: as `write`.
    """
    screen = console(sys.stdout)
    with screen.capture() as shown:
        show(screen)
    write(shown.get())


def _columns(stream: TextIO) -> int:
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked[:6]) >= 20:
        return min(int(asked[:6]), 1000)
    try:
        return os.get_terminal_size(stream.fileno()).columns or WITHOUT_TERMINAL
    except (OSError, ValueError):  # no terminal, or no file at all
        return WITHOUT_TERMINAL
