"""These tests bring the stage up and down themselves, so they run before those that share one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from e2e.cluster import node, stage
from e2e.cluster.layout import STAGE, Switches

if TYPE_CHECKING:
    from collections.abc import Iterator

ALL_ON = Switches(dns=True, network_policy=True, audit=True)


@pytest.fixture(scope="session", autouse=True)
def parts() -> stage.Parts:
    """The programs, built before anything is killed. A stage that somebody works with is not ours to end."""
    if node.find(STAGE):
        pytest.fail("a stage is up, and these tests end it: run `make stage-down` first", pytrace=False)
    return stage.Parts.build(STAGE)


@pytest.fixture
def no_stage() -> Iterator[None]:
    """No stage before the test, and none after it."""
    stage.down(STAGE)
    yield
    stage.down(STAGE)
    assert node.find(STAGE) is None
