"""`kvfence explain`."""

from __future__ import annotations

import difflib
import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from kvfence.cli.output import note, write
from kvfence.engine.text import printable

if TYPE_CHECKING:
    from kvfence.cli.words import Word
    from kvfence.domain.advisories import Advisory


def _completed(incomplete: str) -> list[str]:
    """Return the words that a shell can complete this to."""
    from kvfence.cli.words import all_words  # noqa: PLC0415 - as below

    return sorted({one.name for one in all_words() if one.name.casefold().startswith(incomplete.casefold())})


Asked = Annotated[
    str,
    typer.Argument(
        metavar="WORD",
        help="As it stands in a status, a report or an event.",
        show_default=False,
        autocompletion=_completed,
    ),
]
Advisories = Annotated[
    str,
    typer.Option(
        "--advisories", metavar="FILE", help="Advisories that were added, signed in FILE.sig.", show_default=False
    ),
]
AdvisoryKey = Annotated[
    str,
    typer.Option("--advisory-key", metavar="FILE", help="The public key of who signed them.", show_default=False),
]
WIDTH = 80


def command(word: Asked = "", advisories: Advisories = "", advisory_key: AdvisoryKey = "") -> None:
    """Say what a word of kvfence means: a reason, a condition, a check, a finding, an advisory. Without one: list all.

    \b
    Examples:
      kvfence explain ContextAbovePool
      kvfence explain CVE-2026-3059
      kvfence explain | grep -i checksum
      kvfence explain ACME-2026-1 --advisories more.json --advisory-key key.pub

    Exit codes: 0 explained, 3 there is no such word.
    """  # noqa: D301 - \b is click's: the lines below it are not filled
    from kvfence.cli.words import all_words  # noqa: PLC0415 - reads the API's models, which --help does not need

    words = all_words(_known(advisories, advisory_key))
    if not word:
        write(_listed(words))
        return
    meant = [one for one in words if word.casefold() in {name.casefold() for name in (one.name, *one.aliases)}]
    if not meant:
        raise typer.BadParameter(f"{printable(word, 80)} is no word of kvfence's.{_near(word, words)}")
    write("\n".join(_explained(one) for one in meant))


def _known(file: str, key_file: str) -> tuple[Advisory, ...]:
    """Return the advisories that there are. What is wrong with those that were added is said beside it."""
    from datetime import UTC, datetime  # noqa: PLC0415 - as above

    from kvfence.cli.catalogues import AdvisoriesUnusableError, catalogues  # noqa: PLC0415

    if bool(file) != bool(key_file):
        raise typer.BadParameter("--advisories and --advisory-key go together: one is checked with the other")
    try:
        known = catalogues(file, key_file, datetime.now(UTC))
    except AdvisoriesUnusableError as error:
        raise typer.BadParameter(str(error)) from error
    for sentence in (*(problem.message for problem in known.problems), *known.notes):
        note(sentence)
    return known.advisories


def _near(word: str, words: tuple[Word, ...]) -> str:
    """Return the words that look like it, as a sentence; whatever their case."""
    names = {name.casefold(): name for one in words for name in (one.name, *one.aliases)}
    near = difflib.get_close_matches(word.casefold()[:100], names, n=3, cutoff=0.5)
    near += [name for name in names if len(word) > 3 and word.casefold() in name and name not in near][: 3 - len(near)]
    return f" Near it: {', '.join(names[name] for name in near)}." if near else " Without a word all are listed."


def _listed(words: tuple[Word, ...]) -> str:
    wide = max(len(one.name) for one in words)
    kinds = dict.fromkeys(one.kind for one in words)
    parts = []
    for kind in kinds:
        lines = [f"  {printable(one.name):<{wide}}  {printable(one.says)}" for one in words if one.kind == kind]
        parts.append("\n".join([f"{kind}:", *lines]))
    return "\n\n".join(parts) + "\n"


def _explained(word: Word) -> str:
    aliases = f", also {', '.join(map(printable, word.aliases))}" if word.aliases else ""
    head = f"{printable(word.name)} ({word.kind.lower()}{aliases})\n"
    parts = [printable(part, 5000) for part in (word.says, *word.more)]
    lines = [
        line
        for part in parts
        for line in textwrap.wrap(part, WIDTH - 2, break_long_words=False, break_on_hyphens=False)
    ]
    return head + "".join(f"  {line}\n" for line in lines)
