"""The report for people."""

from __future__ import annotations

import itertools
import textwrap
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from kvfence.cli.canary.choosing import NOT_NAMED
from kvfence.cli.canary.report import ExitCode, Verdict
from kvfence.cli.canary.statement import statement
from kvfence.engine.text import printable

if TYPE_CHECKING:
    from rich.console import Console

    from kvfence.cli.canary.report import Judged, Report
    from kvfence.verify.canary.session import Known, Target

WORDS = {
    Verdict.PASS: ("pass", "green"),
    Verdict.FAIL: ("FAIL", "bold red"),
    Verdict.NOT_JUDGED: ("could not be judged", "yellow"),
    Verdict.BROKEN: ("the check is broken", "bold magenta"),
}

EVIDENCE = 20
"""Lines for each check; JSON has all of them."""

_ENDS = {
    ExitCode.PASSED: "All that was asked was answered as it must be. What no canary can see is in docs/canary.md.",
    ExitCode.FAILED: "This target fails: do what stands under the checks that failed before anybody uses it again.",
    ExitCode.NOT_JUDGED: "Nothing failed, but not everything could be judged: this is no pass.",
    ExitCode.INTERRUPTED: "Stopped before the end: this is what was seen by then.",
}


def show(report: Report, console: Console) -> None:
    """Write the report."""
    _head(report, console)
    if report.checks:
        console.print(_checks(report))
    ordered = sorted(report.checks, key=lambda one: list(WORDS).index(one.verdict), reverse=True)
    for _, alike in itertools.groupby(ordered, lambda one: (one.verdict, one.reason, one.evidence)):
        _details(tuple(alike), console)
    _detection(report, console)
    for note in report.notes:
        _wrapped(f"Note: {note}", console)
    left_out = [one for one in report.left_out if one.why != NOT_NAMED]  # the others the user knows
    if left_out:
        _wrapped("Left out: " + "; ".join(f"{one.check.value} ({one.why})" for one in left_out), console)
    style = WORDS[Verdict.PASS][1] if report.exit_code is ExitCode.PASSED else "bold"
    console.print(Text(_ENDS[report.exit_code], style=style))


def _head(report: Report, console: Console) -> None:
    console.print(Text(f"{printable(report.name)}{_model(report.target)}", style="bold"))
    if report.target is not None:
        for known in (*report.target.legs, *report.target.engines):
            _wrapped(_server(known), console, "  ")


def _model(target: Target | None) -> str:
    return "" if target is None else f", model {printable(target.model)}"


def _server(known: Known) -> str:
    told = [
        ("version", known.version),
        ("KV pool", known.kv_pool_tokens),
        ("context", known.context_length),
        ("prompts below", known.max_input_tokens),
    ]
    figures = [
        f"{what} {value:,}" if isinstance(value, int) else f"{what} {printable(str(value))}"
        for what, value in told
        if value is not None
    ]
    return f"{known.name} {printable(known.url)}: {', '.join(figures) or 'does not tell what it is'}"


def _checks(report: Report) -> Table:
    table = Table(header_style="bold", pad_edge=False)
    table.add_column("check", no_wrap=True)
    table.add_column("verdict")
    for name in ("requests", "tokens", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for judged in report.checks:
        word, style = WORDS[judged.verdict]
        figures = (f"{judged.requests:,}", f"{judged.tokens:,}", f"{judged.seconds:.1f}")
        table.add_row(judged.check.value, Text(word, style=style), *figures)
    table.add_section()
    table.add_row("in all", "", f"{report.requests:,}", f"{report.tokens:,}", f"{report.seconds:.1f}")
    return table


def _details(alike: tuple[Judged, ...], console: Console) -> None:
    """Write the reason of checks that ended alike, once for all of them."""
    judged = alike[0]
    if not judged.reason and not judged.evidence:
        return
    word, style = WORDS[judged.verdict]
    names = ", ".join(one.check.value for one in alike)
    console.print(Text.assemble(names, ": ", (word, style)))
    if judged.reason:
        _wrapped(judged.reason, console, "  ")
    for line in judged.evidence[:EVIDENCE]:
        _wrapped(f"- {line}", console, "  ")
    if len(judged.evidence) > EVIDENCE:
        console.print(Text(f"  and {len(judged.evidence) - EVIDENCE} more; --output json has all"))


def _detection(report: Report, console: Console) -> None:
    for judged in report.checks:
        if judged.verdict is Verdict.PASS and judged.probing is not None:
            _wrapped(f"{judged.check.value}: {statement(judged.probing)}", console)


def _wrapped(text: str, console: Console, indent: str = "") -> None:
    """Write a text from outside, on as many lines as it takes; a marker or an address is never cut in two."""
    filled = textwrap.fill(
        printable(text),
        console.width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    console.print(Text(filled), soft_wrap=True)
