"""The bench: its committed results are read, its tables are those of them, and a broken promise is seen."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from bench.engine.cli import NUMBERS, RESULTS, TABLES
from bench.engine.picture import draw
from bench.engine.report import promises, report

LARGEST_PICTURE = 200_000


@pytest.fixture(scope="module")
def found() -> Any:
    """What is committed."""
    return json.loads((RESULTS / NUMBERS).read_text())


def broken(found: Any) -> int:
    """Return how many promises are not kept."""
    return sum(not promise.is_kept for promise in promises(found))


def test_the_committed_tables_are_of_the_committed_numbers(found: Any) -> None:
    assert (RESULTS / TABLES).read_text() == report(found)


def test_pictures_are_small_and_those_that_are_committed(found: Any, tmp_path: Path) -> None:
    drawn = draw(found, tmp_path)
    assert sorted(picture.name for picture in drawn) == sorted(picture.name for picture in RESULTS.glob("*.svg"))
    assert max(picture.stat().st_size for picture in drawn) < LARGEST_PICTURE


@pytest.mark.parametrize(
    ("which", "name"),
    [("idle", "operations"), ("idle", "copies"), ("tags", "waits"), ("tags", "read")],
)
def test_a_step_that_costs_more_breaks_a_promise(found: Any, which: str, name: str) -> None:
    changed = copy.deepcopy(found)
    cell = next(cell for cell in changed["steps"] if cell["idle"])
    cell[which][name] += 1
    assert broken(changed) > broken(found)


def test_a_number_assigned_in_a_step_breaks_a_promise(found: Any) -> None:
    changed = copy.deepcopy(found)
    for cell in changed["steps"]:
        cell["tags"]["numbers"] = 0
    without = broken(changed)
    for cell in changed["steps"]:  # in all, so that the context makes no difference
        cell["tags"]["numbers"] = 1
    assert broken(changed) == without + 1


def test_a_second_wait_of_a_request_breaks_a_promise(found: Any) -> None:
    changed = copy.deepcopy(found)
    changed["admission"][0]["counts"]["verify on decode"]["waits"] += 1
    assert broken(changed) > broken(found)
