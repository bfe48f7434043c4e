"""The commands of a document, and whether what it shows of their output is what they print."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvfence.verify import markers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROMPT = "$ "
LEFT_OUT = "..."
"""A line of this alone stands for any lines that a document leaves out."""

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_BORDERS = re.compile(r"[\u2500-\u257f]+")
_SECONDS = re.compile(r"(?<![\d.])\d+\.\d(?![\d.])")
_MARKER = re.compile(rf"\b[{markers.CHARACTERS}]{{{markers.LENGTH}}}\b")
_USER = re.compile(r"\buser [A-Z]\d+\b")


@dataclass(frozen=True)
class Shown:
    """One command of a document, and what the document says that it prints."""

    line: str
    printed: tuple[str, ...]


def shown(document: str) -> tuple[Shown, ...]:
    """Return all commands of a document's `console` blocks, in their order.

    Raises:
        ValueError: a block does not begin with a command.
    """
    return tuple(one for block in _BLOCK.findall(document) for one in _commands(block))


def _commands(block: str) -> Iterator[Shown]:
    first, *rest = block.split(f"\n{PROMPT}")
    if not first.startswith(PROMPT):
        raise ValueError(f"a console block begins with {block[:40]!r} and not with a command")
    for text in (first.removeprefix(PROMPT), *rest):
        line, *printed = text.rstrip("\n").split("\n")
        while line.endswith("\\"):
            line = line[:-1].rstrip() + " " + printed.pop(0).lstrip()
        yield Shown(line, tuple(printed))


def with_addresses(text: str, addresses: Mapping[str, str]) -> str:
    """Return the text with each key replaced by its value."""
    for old, new in addresses.items():
        text = text.replace(old, new)
    return text


def first_unlike(expected: tuple[str, ...], printed: str) -> str | None:
    """Return the first line that a document shows and the command did not print; none when all is there.

    Lines must come in the order of the document, and between two that follow each other there nothing may stand, unless
    the document says with a line `...` that it leaves something out. How wide a column is, how many seconds something
    took, which of its users the canary names, and which characters a marker has, is not compared.
    """
    lines = [plain for plain in map(_plain, printed.splitlines()) if plain]
    place, skipping = 0, False
    for line in expected:
        if line.strip() == LEFT_OUT:
            skipping = True
            continue
        wanted = _plain(line)
        if not wanted:
            continue
        try:
            found = lines.index(wanted, place)
        except ValueError:
            return line
        if found != place and not skipping:
            return line
        place, skipping = found + 1, False
    return None if skipping or place == len(lines) or not expected else lines[place]


def _plain(line: str) -> str:
    line = _SECONDS.sub("0.0", _BORDERS.sub(" ", line))
    return " ".join(_USER.sub("user", _MARKER.sub("MARKER", line)).split())
