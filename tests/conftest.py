"""What holds for every fast test."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes is the machine's business: one that is busy elsewhere for a moment fails no test.
settings.register_profile("kvfence", deadline=None, suppress_health_check=(HealthCheck.too_slow,))
settings.load_profile("kvfence")

HERE = Path(__file__).parent
SECONDS = 20  # one test that takes longer has no place on this level


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test of this folder the short limit, unless it names its own."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SECONDS))
