"""The Deployment of a role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.render.identity import Component, labels, metadata, selector, workload_name

if TYPE_CHECKING:
    from kvfence.render.identity import Manifest, PoolIdentity

NO_DEADLINE = 2**31 - 1
"""By convention: the Deployment never calls itself failed. How long an engine may take to start is the pool's to say,
in its startup probe."""


def deployment(pool: PoolIdentity, role_name: str, revision: str, template: Manifest, replicas: int) -> Manifest:
    """Return the Deployment.

    Args:
        pool: whose it is.
        role_name: which role.
        revision: which revision.
        template: as it was frozen with the revision; it is applied as it is.
        replicas: the number of engines; may be 0, to make room for another revision.
    """
    own = selector(pool, Component.ENGINE, role=role_name, revision=revision)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(
            pool,
            workload_name(pool, role_name, revision),
            labels(pool, Component.ENGINE, role=role_name, revision=revision),
        ),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": own},
            "strategy": {"type": "Recreate"},  # there may be no GPU to spare
            "revisionHistoryLimit": 0,  # the template never changes, and the history is in ControllerRevisions
            "progressDeadlineSeconds": NO_DEADLINE,
            "template": template,
        },
    }
