"""nginx in front of a router that stands in for smg, for each test its own router."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.cluster import packages
from e2e.front import nginx, router
from e2e.front.nginx import Front
from e2e.front.router import Router
from kvfence.render.front import models_json

MODELS = models_json("tiny", 1000)


@pytest.fixture(scope="session")
def front() -> Iterator[Front]:
    """A front without a router behind it."""
    packages.install(packages.FRONT_PACKAGES)
    with nginx.running(MODELS) as made:
        yield made


@pytest.fixture
def behind(front: Front) -> Iterator[Router]:
    """A router behind the front."""
    made = Router()
    with router.serving(front.router_port, made):
        yield made
