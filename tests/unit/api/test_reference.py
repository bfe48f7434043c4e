"""The reference of conditions and reasons is generated, fresh, and complete."""

from __future__ import annotations

from pathlib import Path

from kvfence.api.v1alpha1.conditions import ConditionType
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.api.words import reference

COMMITTED = Path(__file__).resolve().parents[3] / "docs" / "reference" / "conditions.md"


def test_the_committed_reference_is_the_generated_one() -> None:
    assert COMMITTED.read_text() == reference(), "run `make generate`, and commit what it changes"


def test_every_word_has_a_row_with_its_meaning() -> None:
    rows = [line for line in reference().splitlines() if line.startswith("| `")]
    assert len(rows) == len(ConditionType) + len(Reason)
    assert all(len(row.split("|")[2].strip()) > 10 for row in rows)
