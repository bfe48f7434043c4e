"""Shows what was seen: a row for each defence, and words for each that nobody noticed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from e2e import progress
from e2e.red.trial import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from e2e.red.trial import Result


def show(results: Sequence[Result], console: Console) -> None:
    """Write the table, and below it what is wrong."""
    table = Table(title="Defences taken out, one at a time", title_justify="left", title_style="bold")
    table.add_column("defence")
    table.add_column("what holds with it")
    table.add_column("test that went red")
    table.add_column("time", justify="right")
    for result in results:
        table.add_row(
            Text(result.defence.name),  # as Text: nothing in it is markup
            Text(result.defence.sentence),
            _red(result),
            progress.clock(result.seconds),
        )
    console.print(table)
    for result in results:
        if result.outcome is not Outcome.RED:
            console.print(Text(f"{result.defence.name} {result.outcome}: {result.words}"))
    seen = sum(result.outcome is Outcome.RED for result in results)
    console.print(f"{seen} of {len(results)} were noticed.")


def _red(result: Result) -> Text:
    if result.outcome is not Outcome.RED:
        return Text(f"NONE: {result.outcome}", style="bold red")
    return Text("\n".join(test.function for test in result.red))
