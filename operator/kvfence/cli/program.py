"""Runs a command, and gives every way in which it can end its words and its exit code."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kvfence.cli.commands import root
from kvfence.cli.output import ReaderGoneError
from kvfence.engine.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = 3
"""click's own 2 means here that something cannot be told."""
FAULT = 70
"""A fault of kvfence itself; `EX_SOFTWARE` of sysexits."""
INTERRUPTED = 130
NOT_WRITTEN = 74
"""Standard output cannot be written, a full disk for example; `EX_IOERR` of sysexits."""
NO_ROOM = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""With which a write to standard output fails, at any place that prints."""
READER_GONE = 141
"""As of a process that SIGPIPE ended."""

USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
"""typer has click's exceptions from click or from a copy of its own, by its version."""

TRACEBACK = "KVFENCE_TRACEBACK"
"""Of the environment: set, a fault shows its whole traceback."""


def run(argv: Sequence[str]) -> int:
    """Run what the arguments ask for; return the status to exit with.

    Args:
        argv: of the process, its own name first.
    """
    _make_writable()
    try:
        status = _run(argv)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return READER_GONE
    except OSError as error:
        _forget_stdout()
        sys.stderr.write(f"kvfence: standard output cannot be written: {error.strerror}\n")
        return NOT_WRITTEN
    return status


def _make_writable() -> None:
    """Let nothing that is printed be a fault: no letter that the terminal does not have, no stream that is closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - until the process ends
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def name_of(program: str) -> str:
    """Return how the command line was called, for its usage lines."""
    name = Path(program).name
    if name.startswith("kubectl-kvfence"):
        return "kubectl kvfence"
    return "python -m kvfence.cli" if name == "__main__.py" else "kvfence"


def _run(argv: Sequence[str]) -> int:
    name = name_of(argv[0])
    command = root(completion=name == "kvfence")
    if os.environ.get("_KVFENCE_COMPLETE"):
        command.main(prog_name="kvfence")  # the shell asks for completions; it exits
    try:
        with command.make_context(name, list(argv[1:])) as context:
            status = command.invoke(context)
    except typer.Exit as asked:
        return asked.exit_code
    except typer.Abort:
        return INTERRUPTED
    except USAGE_ERROR as error:
        return _refused(error)
    except ReaderGoneError:
        raise BrokenPipeError from None
    except Exception as error:
        if isinstance(error, OSError) and error.errno in NO_ROOM and error.filename is None:
            raise
        return _failed(error)
    return status if isinstance(status, int) else 0


def _refused(error: Any) -> int:
    """Say what is wrong with the arguments. They may come from anywhere, through xargs for example."""
    context = error.ctx
    lines = []
    if context is not None:
        lines += [*context.get_usage().splitlines(), f"Try '{context.command_path} --help' for help.", ""]
    lines.append(f"Error: {printable(error.format_message().removeprefix('Invalid value: '))}")
    sys.stderr.write("\n".join(lines) + "\n")
    return USAGE


def _failed(error: Exception) -> int:
    """Say that kvfence is at fault. The error's own words may quote what was read, so they are shown when asked for."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "kvfence" in frame.filename]
    where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames[-4:]))
    if os.environ.get(TRACEBACK):
        sys.stderr.write(printable_lines("".join(traceback.format_exception(error))))
    sys.stderr.write(
        f"kvfence failed, and it is kvfence's fault: {type(error).__name__} at {where}\n"
        f"Please report this line with what `kvfence version` prints. With {TRACEBACK}=1 the same command shows more; "
        "look through it before you pass it on, since it may quote what was read.\n"
    )
    return FAULT


def printable_lines(text: str) -> str:
    """Return a text of several lines with nothing in it that could act on a terminal."""
    return "".join(printable(line) + "\n" for line in text.splitlines())


def _forget_stdout() -> None:
    """Let Python flush into nothing as it ends; it would complain of the closed pipe."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):  # not a file: nothing is flushed there
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, descriptor)
    os.close(nothing)
