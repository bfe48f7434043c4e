"""The estimate against the pools of the field logs, and the page that states its errors."""

from __future__ import annotations

import pytest

from kvfence.domain.estimate import CacheType, Flags, Layout, left_for_pool, token_bytes, tokens_in
from tests.capacity.cases import BOUGHT, NOT_COMPARED, RULED, SIZED, Ruled, Sized
from tests.capacity.comparing import Compared, compared, model, names, real_pool, text
from tests.capacity.page import PAGE

WORST = 10
"""Per cent that the likely figure may be off; it is 8.5 at worst now."""


def test_every_field_log_is_compared_or_has_a_reason_why_not() -> None:
    assert sorted([*(case.log for case in BOUGHT), *NOT_COMPARED]) == sorted(names())


@pytest.mark.parametrize("row", compared(), ids=lambda row: row.case.log)
def test_the_real_pool_is_within_the_range_and_near_what_was_likely(row: Compared) -> None:
    assert row.within
    assert abs(row.error) < WORST


@pytest.mark.parametrize("case", RULED, ids=lambda case: case.log)
def test_sglangs_rule_gives_what_the_log_says(case: Ruled) -> None:
    rest = left_for_pool(case.before, case.before - case.after, case.fraction)
    if case.rest is not None:
        assert rest == pytest.approx(case.rest, abs=0.015)
    else:
        assert case.token_bytes is not None
        hundredth = 0.01 * 1024**3 / case.token_bytes
        assert tokens_in(rest, case.token_bytes, Flags()) == pytest.approx(real_pool(case.log), abs=hundredth)


@pytest.mark.parametrize("case", SIZED, ids=lambda case: case.log)
def test_a_token_takes_what_the_log_says_within_its_rounding(case: Sized) -> None:
    size = token_bytes(model(case.model), Layout(tp=case.tp), CacheType(case.cache_type)).likely
    padding = 64 * size / 1024**3  # the buffer has a page that no request gets
    assert -0.015 < case.gib - size * real_pool(case.log) / 1024**3 < 0.015 + padding


def test_the_page_states_the_figures_as_they_are_now() -> None:
    assert PAGE.part_of(PAGE.path.read_text()) == text(), "python -m tests.capacity --write"


def test_figures_go_between_the_marks_and_nowhere_else() -> None:
    page = PAGE.with_part(f"above\n{PAGE.begin}old\n{PAGE.end}below\n", "new\n")
    assert PAGE.part_of(page) == "new\n"
    assert (page.startswith("above\n"), page.endswith("below\n"), "old" in page) == (True, True, False)
    with pytest.raises(ValueError, match="one mark"):
        PAGE.part_of("no marks")
