from __future__ import annotations

import pytest

from kvfence import __version__
from kvfence.domain.plugin import FIRST_WITH_PAGE_DEFENCES, has_page_defences
from kvfence_engine import __version__ as engine_version


@pytest.mark.parametrize(
    ("version", "has"),
    [("0.1.0.dev0", False), ("0.0.9", False), ("0.1.0.dev1", True), ("0.1.0", True), ("1.0", True), ("nightly", False)],
)
def test_only_a_kvfence_engine_that_has_the_defences_is_asked_for_them(version: str, has: bool) -> None:
    assert has_page_defences(version) is has


def test_the_one_of_today_has_them() -> None:
    assert has_page_defences(engine_version)
    assert has_page_defences(__version__)
    assert not has_page_defences("0.1.0.dev0")
    assert FIRST_WITH_PAGE_DEFENCES == "0.1.0.dev1"
