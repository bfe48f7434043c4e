"""What each finding says about the engine, as a whole table."""

from __future__ import annotations

import pytest

from kvfence_engine.integrity.classes import Finding, of
from kvfence_engine.integrity.coverage import Mismatch
from kvfence_engine.integrity.tally import Kind

BEFORE = {
    Kind.FOREIGN_PAGE: Finding.CONTAINED,
    Kind.UNWRITTEN_PAGE: Finding.CONTAINED,
    Kind.SHARED_PAGE: Finding.CONTAINED,
    Kind.EMPTY_PAGE: Finding.CONTAINED,
    Kind.OTHER_BYTES: Finding.CONTAINED,
    Kind.COVERAGE: Finding.CONTAINED,
    Kind.UNVERIFIED: Finding.ESCAPED,
    Kind.HOOK_MISSING: Finding.ESCAPED,
    Kind.TOO_MANY_RETIRED: Finding.CONTAINED,
}
"""What is found before the first token."""

OF_COVERAGE = {
    Mismatch.TOKENS_DIFFER: Finding.FAILED,
    Mismatch.OTHER_PROMPT: Finding.FAILED,
}
"""All others are contained."""


@pytest.mark.parametrize("kind", Kind)
def test_a_finding_before_the_first_token(kind: Kind) -> None:
    assert of(kind) is BEFORE[kind]


@pytest.mark.parametrize("kind", Kind)
def test_whatever_is_found_in_what_was_found_right_before_has_escaped(kind: Kind) -> None:
    assert of(kind, was_verified=True) is Finding.ESCAPED


@pytest.mark.parametrize("mismatch", Mismatch)
def test_a_client_s_two_prompts_under_one_room_close_no_engine(mismatch: Mismatch) -> None:
    assert of(Kind.COVERAGE, mismatch=mismatch) is OF_COVERAGE.get(mismatch, Finding.CONTAINED)
    assert of(Kind.COVERAGE, was_verified=True, mismatch=mismatch) is Finding.ESCAPED
    assert of(Kind.OTHER_BYTES, mismatch=mismatch) is Finding.CONTAINED, "it counts for coverage alone"
