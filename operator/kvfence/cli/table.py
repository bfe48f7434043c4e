"""The report as people read it: a line for each engine, findings with their cures, what is missing, a verdict."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from kvfence.domain.diagnosis.report import ExitCode, Severity
from kvfence.engine.text import printable

if TYPE_CHECKING:
    from rich.console import Console

    from kvfence.domain.diagnosis.report import Finding, Report
    from kvfence.domain.diagnosis.seen import EngineSeen

NOT_TOLD = "?"
CHECKSUM = "disaggregation_enable_kv_checksum"
"""SGLang's name of the setting."""
STYLES = {
    Severity.CRITICAL: "bold red",
    Severity.HIGH: "red",
    Severity.MEDIUM: "yellow",
    Severity.LOW: "cyan",
}
HEADS = ("version", "pool", "context", "fits", "could offer", "input limit", "checksum")
MISSING_SHOWN = 12
"""Sentences; the report begins with what matters most, and nobody reads a hundred at night."""
NUMBERS = {1, 2, 4, 5}
"""Columns of figures, which stand right."""
GAP = "  "


def show(report: Report, console: Console) -> None:
    """Print it. Whatever came from outside is stripped of what could act on a terminal."""
    if report.engines:
        for line in _engines(report.engines, console.width):
            console.print(line, soft_wrap=True)
        console.print(Text(f"In tokens. {NOT_TOLD} is what was not told.", style="dim"), soft_wrap=True)
        console.print()
    for finding in report.findings:
        _finding(finding, console)
    if report.missing:
        console.print(Text("Missing to be sure", style="bold"))
        for sentence in report.missing[:MISSING_SHOWN]:
            _paragraph(f"- {printable(sentence)}", console)
        if len(report.missing) > MISSING_SHOWN:
            more = len(report.missing) - MISSING_SHOWN
            _paragraph(f"- and {more} more; --output json says all of them on standard error.", console)
        console.print()
    console.print(Text(verdict(report), style="bold"), soft_wrap=True)


def verdict(report: Report) -> str:
    """Return what all of it comes to, in one sentence."""
    engines = _count(len(report.engines), "engine")
    match report.exit_code:
        case ExitCode.FINDINGS:
            gravest = report.findings[0]
            found = _count(len(report.findings), "finding")
            return f"{found} in {engines}; begin with {printable(gravest.id)} ({gravest.severity.value})."
        case ExitCode.NOTHING_FOUND:
            return f"Nothing was found in {engines}: the context on offer fits into every pool."
        case _:
            return f"Cannot tell: what was read of {engines} does not say enough to be sure."


def _engines(engines: tuple[EngineSeen, ...], width: int) -> list[Text]:
    """Return a line for each engine; where its name does not fit into it, the name has a line of its own above."""
    rows = [[Text(head, style="bold") for head in HEADS], *map(_cells, engines)]
    names = [Text("engine", style="bold"), *map(_name, engines)]
    wide = [max(cell_len(row[column].plain) for row in rows) for column in range(len(HEADS))]
    longest = max(cell_len(name.plain) for name in names)
    lines = [_aligned(row, wide) for row in rows]
    if longest + len(GAP) + max(cell_len(line.plain) for line in lines) <= width:
        return [_padded(name, longest) + Text(GAP) + line for name, line in zip(names, lines, strict=True)]
    return [part for name, line in zip(names, lines, strict=True) for part in (name, Text(GAP) + line)]


def _aligned(row: list[Text], wide: list[int]) -> Text:
    cells = [
        _padded(cell, width, right=column in NUMBERS)
        for column, (cell, width) in enumerate(zip(row, wide, strict=True))
    ]
    line = Text(GAP).join(cells)
    line.rstrip()
    return line


def _padded(cell: Text, width: int, *, right: bool = False) -> Text:
    blank = Text(" " * (width - cell_len(cell.plain)))
    return blank + cell if right else cell + blank


def _name(engine: EngineSeen) -> Text:
    rank = "" if engine.rank is None else f" rank {engine.rank}"
    return Text(printable(engine.source, 200) + rank)


def _cells(engine: EngineSeen) -> list[Text]:
    return [
        Text(NOT_TOLD if engine.version is None else printable(engine.version, 20)),
        _number(engine.kv_pool_tokens),
        _number(engine.context_length),
        _fits(engine),
        _number(engine.advertisable_context),
        _number(engine.max_input_tokens),
        _checksum(engine),
    ]


def _number(tokens: int | None) -> Text:
    return Text(NOT_TOLD if tokens is None else f"{tokens:,}")


def _fits(engine: EngineSeen) -> Text:
    if engine.started is False:
        return Text("no start", style="red")
    if engine.context_fits is None:
        return Text(NOT_TOLD, style="yellow")
    return Text("yes", style="green") if engine.context_fits else Text("NO", style="bold red")


def _checksum(engine: EngineSeen) -> Text:
    said = engine.settings.get(CHECKSUM)
    if not isinstance(said, bool):
        return Text(NOT_TOLD)
    return Text("on", style="green") if said else Text("off", style="red")


def _finding(finding: Finding, console: Console) -> None:
    severity = (finding.severity.value.upper(), STYLES[finding.severity])
    console.print(Text.assemble(severity, GAP, (printable(finding.id), "bold")), soft_wrap=True)
    _paragraph(printable(finding.message), console)
    for line in finding.fix.splitlines():
        if line.strip():  # soft_wrap: a line break in the middle would be copied along
            console.print(Text(f"    {printable(line.rstrip())}", style="green"), soft_wrap=True)
    console.print()


def _paragraph(text: str, console: Console) -> None:
    """Print a text in lines that fit, set in; a word is never broken, since it may be an address."""
    wide = max(20, console.width - len(GAP))
    for line in textwrap.wrap(text, wide, break_long_words=False, break_on_hyphens=False):
        console.print(Text(GAP + line), soft_wrap=True)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
