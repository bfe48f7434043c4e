"""The Service that users reach. It points at the router of one revision: the one that is admitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.render.front import USERS_PORT
from kvfence.render.identity import Component, labels, metadata, selector, service_name

if TYPE_CHECKING:
    from kvfence.render.identity import Manifest, PoolIdentity

PORT = 80
NO_REVISION = "none"
"""No hash looks like this: nothing is reached."""


def service(pool: PoolIdentity, revision: str | None) -> Manifest:
    """Return the Service.

    Args:
        pool: whose it is.
        revision: the admitted one; `None` while there is none, and then nothing is reached.
    """
    chosen = NO_REVISION if revision is None else revision
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(pool, service_name(pool), labels(pool, Component.ROUTER)),
        "spec": {
            "type": "ClusterIP",
            "ports": [{"name": "http", "port": PORT, "targetPort": USERS_PORT, "protocol": "TCP"}],
            "selector": selector(pool, Component.ROUTER, revision=chosen),
        },
    }
