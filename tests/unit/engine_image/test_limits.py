"""A cap means the same for a prompt everywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvfence_engine import limits

CAPS = st.integers(8, 2**21)


@pytest.mark.parametrize(
    ("cap", "pool", "longest"),
    [(1000, 1024, 993), (1024, 1024, 1017), (4096, 1024, 1017), (1_048_576, 681_280, 681_273)],
)
def test_the_figures_that_were_measured(cap: int, pool: int, longest: int) -> None:
    # Own limits as SGLang computes them: context above the pool; the last row is the incident.
    assert limits.longest_prompt(cap, own=pool - 6) == longest


@given(CAPS, CAPS, CAPS)
def test_a_cap_never_gives_more_than_the_engine_had(cap: int, lower: int, pool: int) -> None:
    own_input, own_request = pool - 6, pool - 1
    assert limits.input_limit(cap, own_input) <= own_input
    assert limits.request_limit(cap, own_request) <= own_request
    assert limits.longest_prompt(cap, own_input) < limits.request_limit(cap, own_request)
    assert limits.longest_prompt(min(cap, lower), own_input) <= limits.longest_prompt(cap, own_input)
