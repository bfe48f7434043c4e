"""A program `kubectl` that says what a test wants, and keeps how it was called."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """#!{python} -IS
import json, os, sys
here = {here!r}
with open(here + "/called", "a") as called:
    called.write(json.dumps(sys.argv[1:]) + "\\n")
line = " ".join(sys.argv[1:])
with open(here + "/says.json") as file:
    says = json.load(file)
for part, status, out, error in says:
    if part in line:
        try:
            sys.stdout.buffer.write(out.encode("latin-1"))
            sys.stdout.flush()
        except BrokenPipeError:
            os._exit(141)
        sys.stderr.write(error)
        sys.exit(status)
sys.stderr.write("Error from server (NotFound): the server could not find the requested resource")
sys.exit(1)
"""


class FakeKubectl:
    """Put first in PATH."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._says: list[tuple[str, int, str, str]] = []
        (folder / "kubectl").write_text(PROGRAM.format(python=sys.executable, here=str(folder)))
        (folder / "kubectl").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        self._write()

    def says(self, part: str, out: str | bytes | dict[str, Any] = "", status: int = 0, error: str = "") -> None:
        """Answer every call whose arguments have this part; the first that fits counts."""
        text = json.dumps(out) if isinstance(out, dict) else out
        raw = text.encode() if isinstance(text, str) else text
        self._says.append((part, status, raw.decode("latin-1"), error))
        self._write()

    @property
    def called(self) -> list[list[str]]:
        """The arguments of every call so far."""
        path = self._folder / "called"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def _write(self) -> None:
        (self._folder / "says.json").write_text(json.dumps(self._says))
