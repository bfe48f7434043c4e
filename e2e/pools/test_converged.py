"""A pool that is as asked for costs no write: not when it is looked at again, not when something near it moves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.cluster.audit import AuditLog, Request
from e2e.cluster.waiting import wait_for
from e2e.pools.conftest import RESYNC_SECONDS, Brought
from e2e.pools.installation import Installation

LEASE = ("leases", "kvfence-operator")
"""What a leader writes every 2 s, by resource and name: that it leads."""
WRITES = "kvfence_api_writes_total"
QUEUE = "kvfence_queue_length"
RESYNCS = "kvfence_resyncs_total"
RECONCILES = 'kvfence_reconciles_total{result="done"}'
QUIET_SECONDS = 3.0
HANDLED_SECONDS = 60.0


def events(kind: str) -> str:
    return f'kvfence_watch_events_total{{kind="{kind}"}}'


HANDLED = {events("Pod"): 3, events("Service"): 1, RESYNCS: 2, RECONCILES: 3}
"""What has to have moved in the window, and by how much: two pods of the pool and a stranger, the pool's Service."""


@pytest.fixture
def settled(first: Brought, operator: Installation) -> dict[str, float]:
    """The operator's counters, once it is at work and has written nothing for a while."""
    counted = operator.metrics()
    since = time.monotonic()

    def quiet() -> bool:
        nonlocal counted, since
        now = operator.metrics()
        if now[WRITES] != counted[WRITES] or now[QUEUE] or not now.get(RECONCILES):
            since = time.monotonic()
        counted = now
        return time.monotonic() - since > QUIET_SECONDS

    wait_for("the operator to write nothing more", quiet, HANDLED_SECONDS, every=0.3)
    return counted


@pytest.fixture
def audit(operator: Installation) -> AuditLog:
    """The API server's own record."""
    return AuditLog(operator.stage.layout.audit_log)


@pytest.fixture
def stranger(first: Brought) -> Iterator[dict[str, Any]]:
    """A pod that says kvfence manages it, and belongs to no pool; no node takes it."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "stranger",
            "namespace": first.pool.namespace,
            "labels": {"app.kubernetes.io/managed-by": "kvfence"},
        },
        "spec": {
            "nodeSelector": {"example.invalid/nowhere": "true"},
            "containers": [{"name": "one", "image": "example.invalid/none:1"}],
        },
    }
    yield pod
    where = ("--namespace", first.pool.namespace)
    first.pool.stage.kubectl.try_run("delete", "pod", "stranger", "--ignore-not-found", "--now", *where)


def writes(audit: AuditLog, position: int, user: str) -> list[Request]:
    return [one for one in audit.since(position) if one.is_write and one.user == user]


def test_a_converged_pool_is_written(
    first: Brought,
    operator: Installation,
    settled: dict[str, float],
    audit: AuditLog,
    stranger: dict[str, Any],
) -> None:
    position, pool, kubectl = audit.position(), first.pool, operator.stage.kubectl
    touched = [("pod", pool.engines(role)[0]["metadata"]["name"]) for role in ("prefill", "decode")]
    for kind, name in (*touched, ("service", pool.name)):
        kubectl.run("annotate", kind, name, "example.invalid/touched=1", "--namespace", pool.namespace)
    kubectl.apply([stranger])

    def handled() -> bool:
        now = operator.metrics()
        more = {name: now.get(name, 0.0) - settled.get(name, 0.0) for name in HANDLED}
        return not now[QUEUE] and all(more[name] >= count for name, count in HANDLED.items())

    try:
        wait_for("resyncs and events to be handled", handled, HANDLED_SECONDS + 3 * RESYNC_SECONDS, every=0.5)
        seen = writes(audit, position, operator.user)
    finally:
        for kind, name in (*touched, ("service", pool.name)):
            kubectl.run("annotate", kind, name, "example.invalid/touched-", "--namespace", pool.namespace)
    leases = [one for one in seen if (one.resource, one.name) == LEASE]
    assert leases, "the log does not show what the operator writes"
    assert [one for one in seen if one not in leases] == []
    assert operator.metrics()[WRITES] == settled[WRITES]


def test_control_what_somebody_changed_is_mended_with_a_write_that_is_seen(
    first: Brought, operator: Installation, settled: dict[str, float], audit: AuditLog
) -> None:
    position, pool = audit.position(), first.pool
    where = ("--namespace", pool.namespace)
    account = f"{pool.name}-kvfence"
    patch = '{"automountServiceAccountToken": true}'
    operator.stage.kubectl.run("patch", "serviceaccount", account, "--type=merge", f"--patch={patch}", *where)

    def mended() -> bool:
        found = operator.stage.kubectl.get("serviceaccount", account, *where)
        return found["automountServiceAccountToken"] is False

    wait_for("the operator to mend it", mended, HANDLED_SECONDS, every=0.3)
    seen = {(one.verb, one.resource, one.name) for one in writes(audit, position, operator.user)}
    assert ("patch", "serviceaccounts", account) in seen
    assert operator.metrics()[WRITES] > settled[WRITES]
