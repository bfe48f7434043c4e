"""Whether a document's output is a command's is told right."""

from __future__ import annotations

import pytest

from e2e.by_hand import console

DOCUMENT = """
```console
$ one \\
    more
first
...
$ two
```

    $ not this

```console
$ three
```
"""
PRINTED = "head\n\u250f\u2501\u2501\u2513\n\u2503 a  \u2502 0.3 \u2503\nX4KQ7WBZ23PM of user A6 came out\nend\n"


def test_commands_and_what_they_print_are_found_in_their_order() -> None:
    first, second, third = console.shown(DOCUMENT)
    assert first == console.Shown("one more", ("first", "..."))
    assert (second.line, second.printed, third.line) == ("two", (), "three")


def test_a_block_without_a_command_is_refused() -> None:
    with pytest.raises(ValueError, match="not with a command"):
        console.shown("```console\nno prompt\n```\n")


@pytest.mark.parametrize(
    "expected",
    [
        ("head", "| a | 0.4 |".replace("|", "\u2502"), "M2NPQRSTUVWX of user A12 came out", "end"),
        ("head", "...", "end"),
        ("...", "ZABCDEFGH234 of user A9 came out", "..."),
        ("...",),
    ],
)
def test_the_same_output_is_taken_for_the_same(expected: tuple[str, ...]) -> None:
    assert console.first_unlike(expected, PRINTED) is None


@pytest.mark.parametrize(
    ("expected", "line"),
    [
        (("head", "end"), "end"),
        (("head", "...", "M2NPQRSTUVWX of nobody came out", "..."), "M2NPQRSTUVWX of nobody came out"),
        (("...", "end", "head"), "head"),
        (("head", "..."), None),
        (("head",), "a 0.0"),
        (("...", "M2NPQRSTUVWX of user A12 came out"), "end"),
    ],
)
def test_another_output_is_seen(expected: tuple[str, ...], line: str | None) -> None:
    assert console.first_unlike(expected, PRINTED) == line
