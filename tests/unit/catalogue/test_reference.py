"""The reference of advisories is generated, fresh, and complete."""

from __future__ import annotations

import json
from pathlib import Path

from kvfence.catalogue import packaged
from kvfence.catalogue.packaged import left_out
from kvfence.catalogue.reference import reference
from kvfence.domain.advisories import Applies
from kvfence.domain.advisories.conditions import Told
from kvfence.domain.advisories.parsing_conditions import condition

COMMITTED = Path(__file__).resolve().parents[3] / "docs" / "reference" / "advisories.md"


def test_the_committed_reference_is_the_generated_one() -> None:
    generated = reference(packaged(), left_out())
    assert COMMITTED.read_text() == generated, "run `make generate`, and commit what it changes"


def test_every_condition_that_the_reference_shows_can_be_read() -> None:
    rows = [line for line in reference(packaged(), ()).splitlines() if line.startswith('| `{"')]
    shown = [json.loads(text) for line in rows for text in line.split("|")[1].split("`")[1::2] if "..." not in text]
    assert [condition(one).answer(Told(None, {}, {})).applies for one in shown] == [Applies.UNKNOWN] * 8


def test_every_advisory_has_a_row_and_a_section_and_what_was_left_out_a_reason() -> None:
    lines = reference(packaged(), left_out()).splitlines()
    for one in packaged().advisories:
        assert f"## {one.id}" in lines
        assert sum(line.startswith(f"| [{one.id}](") for line in lines) == 1
    assert all(f"| {what} | {why} |" in lines for what, why in left_out())
