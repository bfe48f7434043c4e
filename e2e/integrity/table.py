"""Shows what came of attacks, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Mapping

    from e2e.integrity.attacks import Attack
    from e2e.integrity.outcome import Outcome
    from kvfence.domain.asking import Answer

WIDTH = 190
SHOWN_CHARACTERS = 26
HEADS = (
    *("attack", "what goes wrong", "acted", "prefill", "decode", "text that B gets", "B's marker", "result"),
    "counts that moved",
)


def show(title: str, played: Iterable[tuple[Attack, Outcome]], moved: Mapping[str, Counter[str]] | None = None) -> str:
    """Return the table as text.

    Args:
        title: above it.
        played: one row each.
        moved: by attack, how much which count of the engines went up.
    """
    table = Table(title=title, title_justify="left")
    for head in (
        "attack",
        "what goes wrong",
        "acted",
        "prefill",
        "decode",
        "text that B gets",
        "B's marker",
        "result",
        "moved",
    ):
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
            _counts(moved[attack.name] if moved else {}),
        )
    console = Console(width=WIDTH, record=True, file=None)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def _counts(moved: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:+}" for name, count in sorted(moved.items()) if count) or "-"


def _said(answer: Answer | None) -> str:
    if answer is None:
        return "not asked"
    what = str(answer.status) if answer.status is not None else str(answer.fault)
    return f"{what} {answer.prompt_tokens or ''} {answer.seconds:.1f}s"
