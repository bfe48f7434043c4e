"""The guide for people with an SGLang of their own: its commands work, and print what it shows."""

from __future__ import annotations

from e2e.by_hand import console
from e2e.by_hand.conftest import Played


def test_the_guide_has_all_ways_to_look(played: Played) -> None:
    lines = [shown.line for shown, _ in played.guide]
    for part in ("doctor prefill.log", "| kvfence doctor -", "doctor http", "canary http", "explain"):
        assert any(part in line for line in lines), part


def test_each_command_of_the_guide_prints_what_it_shows(played: Played) -> None:
    """Progress, on standard error, is not shown in it."""
    unlike = {
        shown.line: line
        for shown, ran in played.guide
        if (line := console.first_unlike(shown.printed, ran.out)) is not None
    }
    assert unlike == {}, "\n\n".join(f"$ {ran.line}\n{ran.out}{ran.err}" for _, ran in played.guide)
