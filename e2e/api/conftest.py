"""What tests of kvfence's own API share: its CRD, applied once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster.stage import Stage

CRD = Path(__file__).resolve().parents[2] / "crds" / "kvfence.io_inferencepools.yaml"


@pytest.fixture(scope="session")
def pools_api(api: Stage) -> Iterator[Stage]:
    """The API with InferencePool, applied as a person does it; whatever kubectl warns of is a failure."""
    applied = api.kubectl.try_run("apply", "--filename", str(CRD))
    assert (applied.returncode, applied.stderr) == (0, "")
    api.kubectl.run("wait", "--for=condition=Established", "crd/inferencepools.kvfence.io", "--timeout=30s")
    yield api
    api.kubectl.run("delete", "--filename", str(CRD), "--timeout=60s")
