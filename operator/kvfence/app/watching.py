"""kopf as the layer that watches: each event puts a pool into the work queue, and that is all it does.

No handler of kopf's that keeps something is used: no finalizer, no annotation, no timer is ever put on an object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kopf

from kvfence.controller.metrics import EVENTS
from kvfence.kube.kinds import CHILDREN, POD, POOL
from kvfence.render.identity import MANAGED_BY_LABEL, MANAGER, POOL_LABEL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kvfence.controller.queue import Key
    from kvfence.kube.kinds import Kind

SERVER_TIMEOUT_SECONDS = 300
"""After which the API server ends a watch, and it is begun anew. It takes whole seconds alone."""

PAGE = 500


def registry(add: Callable[[Key], None]) -> kopf.OperatorRegistry:
    """Return handlers that call `add` with the pool that an event is about."""
    made = kopf.OperatorRegistry()
    kopf.on.login(registry=made)(_login)

    def watch(kind: Kind, key_of: Callable[[Mapping[str, Any]], Key | None]) -> None:
        async def handle(body: kopf.Body, **_: Any) -> None:
            EVENTS.labels(kind.kind).inc()
            key = key_of(body["metadata"])
            if key is not None:
                add(key)

        group, _, version = kind.api_version.rpartition("/")
        kopf.on.event(group, version, kind.plural, registry=made, id=kind.plural)(handle)

    watch(POOL, lambda metadata: (metadata["namespace"], metadata["name"]))
    for kind in (POD, *CHILDREN):
        watch(kind, _pool_of)
    return made


def settings() -> kopf.OperatorSettings:
    """Return kopf's settings: ours alone are watched, nothing is posted, nothing is kept on objects."""
    made = kopf.OperatorSettings()
    made.watching.server_timeout = SERVER_TIMEOUT_SECONDS
    made.watching.chunk_size = PAGE
    for kind in (POD, *CHILDREN):
        group, _, version = kind.api_version.rpartition("/")
        made.watching.label_selectors[group, version, kind.plural] = f"{MANAGED_BY_LABEL}={MANAGER}"
    made.posting.enabled = False
    made.scanning.disabled = True
    made.persistence.finalizer = "kvfence.io/never-set"
    made.execution.max_workers = 1
    return made


def _pool_of(metadata: Mapping[str, Any]) -> Key | None:
    """The pool that an object belongs to by its label; a foreign object that lies about it costs one look."""
    name = (metadata.get("labels") or {}).get(POOL_LABEL)
    return (metadata["namespace"], name) if name else None


async def _login(**kwargs: Any) -> kopf.ConnectionInfo | None:
    return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)
