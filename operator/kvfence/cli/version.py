"""`kvfence version`."""

from __future__ import annotations

import json
import platform
from importlib.resources import files
from typing import Annotated

import typer

from kvfence import __version__
from kvfence.cli.output import Format, write

Output = Annotated[Format, typer.Option("--output", "-o", help="How to print it.")]


def command(output: Output = Format.TABLE) -> None:
    """Print the versions of kvfence, of the advisories that came with it, and of Python.

    \b
    Examples:
      kvfence version
      kvfence version -o json

    Exit codes: 0 printed, 3 wrong usage.
    """  # noqa: D301 - \b is click's: the lines below it are not filled
    date, advisories = _catalogue()
    if output is Format.JSON:
        said = {
            "version": __version__,
            "catalogue": {"date": date, "advisories": advisories},
            "python": platform.python_version(),
        }
        write(json.dumps(said, indent=2) + "\n")
        return
    write(
        f"kvfence     {__version__}\nadvisories  {advisories}, as of {date}\nPython      {platform.python_version()}\n"
    )


def _catalogue() -> tuple[str, int]:
    """Return day and number of the advisories in the package. To read them takes what is slow to import."""
    folder = files("kvfence") / "catalogue"
    day = (folder / "DATE").read_text().strip()[:10]
    return day, sum(entry.name.endswith(".json") for entry in (folder / "osv").iterdir())
