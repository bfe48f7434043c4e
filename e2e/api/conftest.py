"""What tests of kvfence's own API share: its CRD, applied once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.chart import crd
from e2e.chart.crd import CRD
from e2e.cluster.stage import Stage


@pytest.fixture(scope="session")
def pools_api(api: Stage) -> Iterator[Stage]:
    """The API with InferencePool, applied as a person does it; whatever kubectl warns of is a failure."""
    applied = api.kubectl.try_run("apply", "--filename", str(CRD))
    assert (applied.returncode, applied.stderr) == (0, "")
    crd.wait_until_served(api.kubectl)
    yield api
    crd.remove(api.kubectl)
