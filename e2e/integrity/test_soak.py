"""The short form of `make engine-soak`: clean load that makes decode put requests back, and nothing is found."""

from __future__ import annotations

import pytest

from e2e.conftest import Aloud
from e2e.door.engines import Injection
from e2e.integrity import mixed, soak

SEED = 6
SECONDS = 50.0


@pytest.mark.parametrize("page_size", [16, 1])
def test_requests_that_were_put_back_left_or_found_their_prompt_in_the_cache_are_no_finding(
    injection: Injection, tmp_path_factory: pytest.TempPathFactory, aloud: Aloud, page_size: int
) -> None:
    logs = tmp_path_factory.mktemp("soak")
    with aloud(), mixed.defended(injection, logs, page_size, soak.RESERVED) as legs:
        passed = soak.soaked(legs, SECONDS, SEED)
    assert passed.faults() == [], passed.seen.examples
