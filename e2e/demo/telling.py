"""Writes for people: 100 columns, one line for each thing that happens, with the time that it took."""

from __future__ import annotations

import textwrap
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from e2e.progress import clock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.status import Status

WIDTH = 100
MARGIN = 9
"""Columns of the time, and two of space."""
HEARTBEAT_SECONDS = 15.0


class Teller:
    """Tells the story. Times are counted from the last `begin`."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False)
        if not self.console.is_terminal or self.console.width > WIDTH:
            self.console = Console(file=self.console.file, width=WIDTH, highlight=False)
        self._began = time.monotonic()
        self._status: Status | None = None
        self._waiting_since = self._heard = 0.0

    def begin(self) -> None:
        """Count times from now."""
        self._began = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since the last `begin`."""
        return time.monotonic() - self._began

    def chapter(self, title: str) -> None:
        """Begin a part."""
        self.console.print()
        self.console.print(Text(title, style="bold"))

    def line(self, text: str, details: Sequence[str] = (), style: str = "") -> None:
        """Tell one thing, now."""
        self._row(clock(self.elapsed), text, style)
        for detail in details:
            self._row("", detail, "dim")
        self._heard = time.monotonic()

    def say(self, text: str, style: str = "") -> None:
        """Say something that has no time of its own."""
        for paragraph in text.split("\n"):
            indent = paragraph[: len(paragraph) - len(paragraph.lstrip())]
            width, further = self.console.width, indent * 2
            for line in textwrap.wrap(paragraph, width, subsequent_indent=further, break_on_hyphens=False) or [""]:
                self.console.print(Text(line, style=style), soft_wrap=True)

    def shell(self, command: str, output: str | None = None) -> None:
        """Show a command, as it is typed, and what it printed: as it stands, however wide."""
        self.console.print(Text(f"$ {command}", style="cyan"), soft_wrap=True)
        if output is not None:
            self.console.print(Text(output.rstrip("\n")), soft_wrap=True)

    def command(self, text: str) -> None:
        """Show a command that is to be copied: on one line, however wide."""
        self.console.print(Text(f"  {text}", style="cyan"), soft_wrap=True)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A place for `still`: the last line of a terminal, or now and then a line of its own."""
        self._heard = time.monotonic()
        if not self.console.is_terminal:
            yield
            return
        with self.console.status("") as status:
            self._status = status
            try:
                yield
            finally:
                self._status = None

    def still(self, text: str) -> None:
        """Say what is waited for; call it often."""
        if self._status:
            self._status.update(Text(f"{clock(self.elapsed)}  {text}"))
        elif not self.console.is_terminal and time.monotonic() - self._heard >= HEARTBEAT_SECONDS:
            self.line(f"... {text}")

    def _row(self, when: str, text: str, style: str) -> None:
        for line in textwrap.wrap(text, self.console.width - MARGIN, break_on_hyphens=False) or [""]:
            row = Text(f"{when:>{MARGIN - 2}}  ", style="dim")
            self.console.print(row.append(line, style=style or "not dim"), soft_wrap=True)
            when = ""
