"""What the tests of pools share: one operator, and pools that it brought up."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from e2e.cluster.stage import Stage
from e2e.conftest import Aloud
from e2e.pools.installation import Installation, installed
from e2e.pools.pool import Pool, example
from e2e.pools.prober import SERVICE, Seen, probing
from e2e.progress import step

RESYNC_SECONDS = 10
"""As often as the chart lets an operator look at its pools though nothing happened."""

ANSWERS = 3
"""So often users are answered before a pool counts as up here."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What deletes a shared pool comes last."""
    items.sort(key=lambda item: item.path.name == "test_deletion.py")


@pytest.fixture(scope="session")
def pools_namespace(cluster: Stage) -> Iterator[str]:
    """The namespace of the shared operator's pools."""
    name = f"pools-{secrets.token_hex(4)}"
    cluster.kubectl.run("create", "namespace", name)
    yield name
    cluster.kubectl.try_run("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="session")
def operator(cluster: Stage, pools_namespace: str, aloud: Aloud) -> Iterator[Installation]:
    """The operator of the shared pools."""
    name = f"{pools_namespace}-operator"
    with aloud():
        borrowed = installed(cluster, name, (pools_namespace,), f"--set=resyncSeconds={RESYNC_SECONDS}")
        with borrowed as one:
            yield one


@dataclass(frozen=True)
class Brought:
    """A pool that came up while a user asked all the time."""

    pool: Pool
    seen: Seen


@pytest.fixture(scope="session")
def first(operator: Installation, pools_namespace: str, aloud: Aloud) -> Brought:
    """The first example's pool, admitted. Shared: whoever changes it puts it back."""
    return _brought(Pool.apply(operator.stage, pools_namespace, example("first-pool")), aloud)


@pytest.fixture(scope="session")
def paged(operator: Installation, pools_namespace: str, aloud: Aloud) -> Brought:
    """The same with pages of 16 tokens, admitted. `test_deletion.py` deletes it."""
    sixteen = {"engine": {"sglang": {"args": {"--page-size": "16"}}}}
    return _brought(Pool.apply(operator.stage, pools_namespace, example("paged-pool", sixteen)), aloud)


def _brought(pool: Pool, aloud: Aloud) -> Brought:
    with probing(pool) as seen:
        with aloud(), step(f"bringing up pool {pool.name}", "30 s on idle cores"):
            pool.wait_for_condition("TrafficAdmitted")
            pool.wait_for_condition("Ready")
        seen.wait_for_answers({SERVICE, "prefill", "decode"}, ANSWERS)
    return Brought(pool, seen)
