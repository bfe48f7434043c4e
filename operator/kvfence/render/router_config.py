"""What router and front read from their ConfigMap: the workers, the list of models, and nginx's configuration."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvfence.render.front import CONF_FILE, MODELS_FILE, WORKERS_FILE, nginx_conf
from kvfence.render.identity import Component, labels, metadata, router_config_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvfence.render.identity import Manifest, PoolIdentity

POKE_ANNOTATION = "kvfence.io/router-config"
"""Of a router's pod: a change of it has the kubelet bring the files up to date within a second, and not a minute."""


@dataclass(frozen=True, slots=True)
class Worker:
    """An engine that the router may send requests to.

    Raises:
        ValueError: a prefill engine has no bootstrap port, or a decode engine has one. The router takes the first as it
            is and refuses the whole list for the second.
    """

    id: str
    """The same for an engine as long as its URL is: a changed one is a removal, and half a minute without it."""
    url: str
    """With the address of the pod, never of a Service: the router resends a request once when a connection breaks,
    and that has to meet the same engine."""
    prefill: bool
    bootstrap_port: int | None

    def __post_init__(self) -> None:
        """Refuse what the router would misunderstand."""
        if self.prefill != (self.bootstrap_port is not None):
            raise ValueError("a prefill worker needs a bootstrap port, and a decode worker has none")

    def as_json(self) -> dict[str, Any]:
        """Return what smg reads. A field that it does not know would make it refuse the list."""
        kind = "prefill" if self.prefill else "decode"
        port = {"bootstrap_port": self.bootstrap_port} if self.prefill else {}
        return {"id": self.id, "url": self.url, "worker_type": kind, **port}


def workers_json(workers: Iterable[Worker]) -> str:
    """Return the list of workers for smg's file discovery. In one order, so that the same workers are the same file.

    Raises:
        ValueError: two have the same id or URL. The router would refuse the list, and keep those it had.
    """
    listed = sorted(workers, key=lambda worker: worker.id)
    for values in ([worker.id for worker in listed], [worker.url for worker in listed]):
        if len(set(values)) != len(values):
            raise ValueError("two workers have the same id or URL")
    return json.dumps({"version": 1, "workers": [worker.as_json() for worker in listed]}, indent=1) + "\n"


def config_map(pool: PoolIdentity, revision: str, workers: Iterable[Worker], models: str) -> Manifest:
    """Return the ConfigMap of a revision's routers.

    Args:
        pool: whose it is.
        revision: which one.
        workers: the engines that are admitted.
        models: from `front.models_json`.

    Raises:
        ValueError: see `workers_json`.
    """
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(
            pool, router_config_name(pool, revision), labels(pool, Component.ROUTER, revision=revision)
        ),
        "data": {CONF_FILE: nginx_conf(), WORKERS_FILE: workers_json(workers), MODELS_FILE: models},
    }


def config_digest(config_map: Manifest) -> str:
    """Return what tells one content of a router's ConfigMap from another, for `POKE_ANNOTATION`."""
    return hashlib.sha256(json.dumps(config_map.get("data"), sort_keys=True).encode()).hexdigest()[:16]
