"""What tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.fake_kubectl import FakeKubectl


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKubectl:
    """A kubectl of the test's own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return FakeKubectl(folder, monkeypatch)
