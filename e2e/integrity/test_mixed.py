"""Ordinary and hostile users at once: with all defences nothing crosses over, without any it does."""

from __future__ import annotations

import pytest

from e2e.conftest import Aloud
from e2e.door.engines import Injection
from e2e.integrity import mixed
from e2e.integrity.outcome import Verdict
from e2e.integrity.traffic import drawn

SEED = 6
USERS = 120


@pytest.mark.parametrize("page_size", [16, 1])
def test_nothing_crosses_over_and_nothing_is_found_that_is_not_there(
    injection: Injection, tmp_path_factory: pytest.TempPathFactory, aloud: Aloud, page_size: int
) -> None:
    with aloud(), mixed.defended(injection, tmp_path_factory.mktemp("defended"), page_size) as legs:
        seen = mixed.asked(list(drawn(USERS, SEED)), legs.pair, f"pages of {page_size}, all defences enforced")
        counts = legs.counts()
    assert mixed.faults(seen, counts) == [], seen.examples
    assert counts["decode"]["bytesZeroed"] > 0


def test_the_same_users_get_each_others_text_from_sglang_alone(
    tmp_path_factory: pytest.TempPathFactory, aloud: Aloud
) -> None:
    with aloud(), mixed.bare(tmp_path_factory.mktemp("bare"), 16) as pair:
        seen = mixed.asked(list(drawn(USERS, SEED)), pair, "SGLang alone")
    assert seen.of(Verdict.LEAKED) > 0, dict(seen.verdicts)
