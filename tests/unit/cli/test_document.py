"""`docs/cli.md` shows the help as it is. `python -m tests.unit.cli.test_document` writes it anew."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from kvfence.cli.commands import COMMANDS
from kvfence.domain.diagnosis.report import ExitCode

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs" / "cli.md"
EXCERPT = re.compile(r"(?P<head>```\n\$ kvfence (?P<arguments>[^\n]*--help)\n).*?(?P<tail>```)", re.DOTALL)
PROGRAM = "import sys; sys.argv[0] = 'kvfence'; from kvfence.cli import main; sys.exit(main())"


def printed(arguments: str) -> str:
    """Return what the command line prints at 80 columns without a terminal."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "operator"), "COLUMNS": "80"}
    command = [sys.executable, "-c", PROGRAM, *arguments.split()]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


def fresh(document: str) -> str:
    """Return the document with every excerpt as it is printed now."""
    return EXCERPT.sub(lambda match: match["head"] + printed(match["arguments"]) + match["tail"], document)


def test_the_help_in_the_document_is_the_help() -> None:
    text = DOCUMENT.read_text()
    assert len(EXCERPT.findall(text)) >= 5
    assert text == fresh(text), "run `python -m tests.unit.cli.test_document`, and commit what it changes"


def test_every_command_and_exit_code_is_in_the_document() -> None:
    text = DOCUMENT.read_text()
    assert [name for name in COMMANDS if f"## kvfence {name}" not in text] == []
    assert [code for code in (*map(int, ExitCode), 70, 74, 130, 141) if f"| {code} |" not in text] == []


if __name__ == "__main__":
    DOCUMENT.write_text(fresh(DOCUMENT.read_text()))
