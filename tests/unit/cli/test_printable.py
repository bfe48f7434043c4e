"""What comes from outside cannot act on a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kvfence.engine.text import printable


def test_control_characters_become_blanks() -> None:
    assert printable("a\x1b[2Jb\r\nc\x07\x9bd\x7f") == "a [2Jb  c  d "


def test_marks_of_direction_and_halves_of_surrogates_become_blanks() -> None:
    assert printable("a\u202eb\u2066c\u200bd\udcffe") == "a b c d e"


def test_what_is_long_ends_in_an_ellipsis() -> None:
    assert printable("x" * 11, 10) == "x" * 9 + "…"
    assert printable("x" * 10, 10) == "x" * 10


@given(st.text(alphabet=st.characters(), max_size=200))
def test_nothing_that_cannot_be_printed_is_left(text: str) -> None:
    assert printable(text).isprintable()
