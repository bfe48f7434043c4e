"""Shows what was seen as tables that a person understands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from e2e.incident import verdict
from e2e.incident.cast import CONTEXT, LEAK, PREFILL_POOL, SCENES
from kvfence.engine.pair import Answer, Fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from e2e.incident.scenario import Asked, Seen

SHOWN_CHARACTERS = 30


def show(played: Sequence[Seen], console: Console) -> None:
    """Write one table for each scene and a sentence about what it means."""
    users = max(scene.users for scene in SCENES)
    console.print(
        f"\nA pool offers {CONTEXT:,} tokens of context; its prefill server holds {PREFILL_POOL:,}. "
        f"Users A1 to A{users} send prompts with a marker of their own.\n"
        "Then user B sends prompts that name no marker, and gets:\n"
    )
    for seen in played:
        console.print(_table(seen))
        console.print(f"{_meaning(seen)}\n")


def _table(seen: Seen) -> Table:
    table = Table(title=seen.scene.title, title_justify="left", title_style="bold")
    table.add_column("B's prompt", justify="right")
    table.add_column("prefill says")
    table.add_column("decode says")
    table.add_column("text that B gets")
    table.add_column("whose marker is in it")
    for asked in seen.asked:
        owners = ", ".join(f"A{seen.planted.index(marker) + 1}'s {marker}" for marker in asked.leaked)
        text = asked.answer.decode.text
        shown = text[:SHOWN_CHARACTERS] + ("..." if len(text) > SHOWN_CHARACTERS else "")
        table.add_row(
            f"{asked.tokens:,} tokens",
            _said(asked.answer.prefill),
            _said(asked.answer.decode),
            Text(repr(shown) if text else "-"),  # as Text: nothing in it is markup
            Text(owners or "-", style="bold red" if owners else ""),
        )
    return table


def _said(answer: Answer) -> Text:
    if answer.fault is None:
        return Text(f"200, {answer.prompt_tokens:,} token{'' if answer.prompt_tokens == 1 else 's'}")
    what = str(answer.status) if answer.fault is Fault.STATUS else answer.fault.value
    return Text(f"{what} after {answer.seconds:.1f} s")


def _meaning(seen: Seen) -> str:
    if not seen.copies:
        return "This pair did not even repeat a marker of the same prompt: what the table shows means nothing."
    wrong = sum(1 for asked in seen.asked if _is_wrong(asked))
    if leaked := verdict.leaks(seen):
        return f"{leaked} of {len(seen.asked)} answers to B hold what another user wrote."
    if wrong:
        return (
            f"{wrong} of {len(seen.asked)} answers to B are 200 and made of KV that was never written for them"
            f"{' or of prompts cut short' if seen.scene is not LEAK else ''}; no marker this time."
        )
    if all(asked.answer.prefill.status == 400 and asked.answer.decode.status != 200 for asked in seen.asked):
        slowest = max((asked.answer.decode.seconds for asked in seen.asked), default=0.0)
        return f"No marker came out, and no answer: prefill refuses, decode holds the asker for {slowest:.1f} s."
    return "No marker came out."


def _is_wrong(asked: Asked) -> bool:
    """Tell a success that is none: the legs disagree about the prompt, or it is not the prompt that was sent."""
    legs = (asked.answer.prefill.prompt_tokens, asked.answer.decode.prompt_tokens)
    return asked.answer.decode.status == 200 and legs != (asked.tokens, asked.tokens)
