"""Deleting needs no operator. These tests come last: they delete what the others of this folder shared."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from e2e.cluster.kubectl import Kubectl
from e2e.cluster.waiting import wait_for
from e2e.conftest import Measured
from e2e.pools.conftest import Brought
from e2e.pools.installation import Installation
from e2e.pools.pool import KIND, Pool

GONE_SECONDS = 180.0
"""A router gives its clients 5 s to leave and 20 s to finish, and the kubelet takes its time."""
NAMESPACE_SECONDS = 180.0
PARTS = {
    *("ConfigMap", "ControllerRevision", "Deployment", "EndpointSlice", "NetworkPolicy", "Pod", "ReplicaSet"),
    *("Service", "ServiceAccount"),
}


@pytest.fixture(scope="module")
def no_operator(operator: Installation, first: Brought, paged: Brought) -> None:
    """Nobody who could remove anything. The pools are up by then, and no test after these needs the operator."""
    operator.scale(0)


def deletable(kubectl: Kubectl) -> str:
    """All kinds of objects that a namespace can have, for `kubectl get`."""
    kinds = kubectl.run("api-resources", "--namespaced", "--verbs=list,delete", "--output=name").split()
    assert len(kinds) > 20
    return ",".join(kind for kind in kinds if not kind.startswith("events"))


def parts(pool: Pool, uid: str) -> Counter[str]:
    """How many objects of each kind belong to a pool by its label."""
    kubectl = pool.stage.kubectl
    selector = f"--selector=kvfence.io/pool-uid={uid}"
    found = kubectl.get(deletable(kubectl), "--namespace", pool.namespace, selector)["items"]
    return Counter(one["kind"] for one in found)


def test_a_deleted_pool_leaves_something_when_no_operator_runs(
    paged: Brought, no_operator: None, measured: Measured
) -> None:
    pool = paged.pool
    uid = pool.get()["metadata"]["uid"]
    there = parts(pool, uid)
    assert set(there) >= PARTS, "the label does not find what a pool is made of"
    assert there["Pod"] == 3
    began = time.monotonic()
    pool.delete()
    measured("`kubectl delete inferencepools.kvfence.io` returns without an operator", time.monotonic() - began, 10)
    wait_for(f"all of {dict(there)} to be gone", lambda: not parts(pool, uid), GONE_SECONDS, every=1.0)
    measured("and nothing of the pool is left", time.monotonic() - began, GONE_SECONDS)


def test_a_namespace_with_a_pool_stays_when_no_operator_runs(
    first: Brought, no_operator: None, measured: Measured
) -> None:
    pool, kubectl = first.pool, first.pool.stage.kubectl
    assert parts(pool, pool.get()["metadata"]["uid"])["Pod"] == 3
    began = time.monotonic()
    kubectl.run("delete", "namespace", pool.namespace, seconds=NAMESPACE_SECONDS)
    measured("a namespace with a pool that serves is deleted", time.monotonic() - began, NAMESPACE_SECONDS)
    assert "NotFound" in kubectl.try_run("get", KIND, pool.name, "--namespace", pool.namespace).stderr
