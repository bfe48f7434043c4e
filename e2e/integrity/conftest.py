"""What the attacks stand on."""

from __future__ import annotations

import pytest

from e2e.door.engines import Injection


@pytest.fixture(scope="session")
def injection(tmp_path_factory: pytest.TempPathFactory) -> Injection:
    """kvfence's part of an engine as it is shipped, and a key that it trusts."""
    return Injection.build(tmp_path_factory.mktemp("injection"))
