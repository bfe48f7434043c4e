"""Shows what came of attacks, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from e2e.integrity.attacks import Attack
    from e2e.integrity.outcome import Outcome
    from kvfence.domain.asking import Answer

WIDTH = 160
SHOWN_CHARACTERS = 26


def show(title: str, played: Iterable[tuple[Attack, Outcome]]) -> str:
    """Return the table as text."""
    table = Table(title=title, title_justify="left")
    for head in ("attack", "what goes wrong", "acted", "prefill", "decode", "text that B gets", "B's marker", "result"):
        table.add_column(head)
    for attack, seen in played:
        text = seen.decode.text[-SHOWN_CHARACTERS:]
        table.add_row(
            attack.name,
            attack.what,
            "yes" if seen.fired else "no",
            _said(seen.prefill),
            _said(seen.decode),
            Text(repr(text) if text else "-"),
            Text(seen.expected[-8:] or "-"),
            Text(f"{seen.verdict.value} {', '.join(seen.leaked)}".strip()),
        )
    console = Console(width=WIDTH, record=True, file=None)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def _said(answer: Answer | None) -> str:
    if answer is None:
        return "not asked"
    what = str(answer.status) if answer.status is not None else str(answer.fault)
    return f"{what} {answer.prompt_tokens or ''} {answer.seconds:.1f}s"
