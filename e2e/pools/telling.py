"""Watches pools that cannot come up: when the kubelet knew what is wrong, and when the pool's status said it."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from e2e.pools.pool import KIND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from e2e.cluster.kubectl import Kubectl

LOOK_SECONDS = 0.5
Object = dict[str, Any]


@dataclass(frozen=True)
class Wrong:
    """A pool with something wrong in it, and the words that are due."""

    manifest: Object
    condition: str
    """Which condition says it."""
    reason: str
    """In the end, when Stalled says so too."""
    says: str
    """Regular expression of a part of the message."""
    known_by_pods: bool = True
    """Whether the kubelet has to find it out; else it is known when the pool is applied."""

    @property
    def name(self) -> str:
        """Of the pool."""
        return str(self.manifest["metadata"]["name"])


@dataclass
class Told:
    """When it was known and said, in UNIX time."""

    known: float = 0.0
    said: float = 0.0
    stalled: float = 0.0
    """When Stalled was True, with the reason that is due."""
    conditions: dict[str, Object] = field(default_factory=dict)
    """At the end."""

    @property
    def is_complete(self) -> bool:
        """Whether all of it came."""
        return bool(self.known and self.said and self.stalled)

    @property
    def seconds(self) -> float:
        """From the one to the other. The kubelet writes whole seconds, and may seem to know up to one too early."""
        return self.said - self.known


def watch(kubectl: Kubectl, namespace: str, wrong: Mapping[str, Wrong], seconds: float) -> dict[str, Told]:
    """Watch pools, applied just now, until each has been told of and is stalled, or it takes too long."""
    began = time.time()
    told = {name: Told(known=0.0 if one.known_by_pods else began) for name, one in wrong.items()}
    while time.time() < began + seconds and not all(one.is_complete for one in told.values()):
        pools = kubectl.get(KIND, "--namespace", namespace)["items"]
        pods = kubectl.get("pods", "--namespace", namespace)["items"]
        conditions = {pool["metadata"]["name"]: _conditions(pool) for pool in pools}
        for name, one in wrong.items():
            told[name].known = told[name].known or _known(pods, one.name)
            _note(told[name], one, conditions.get(one.name, {}))
        time.sleep(LOOK_SECONDS)
    return told


def _note(told: Told, wrong: Wrong, conditions: dict[str, Object]) -> None:
    told.conditions = conditions
    said = conditions.get(wrong.condition, {})
    if not told.said and said.get("status") == "False" and re.search(wrong.says, said["message"]):
        told.said = time.time()
    stalled = conditions.get("Stalled", {})
    if not told.stalled and (stalled.get("status"), stalled.get("reason")) == ("True", wrong.reason):
        told.stalled = time.time()


def _conditions(pool: Object) -> dict[str, Object]:
    return {one["type"]: one for one in pool.get("status", {}).get("conditions", [])}


def _known(pods: list[Object], pool: str) -> float:
    """When an engine of the pool first ended, as the kubelet says, or was first seen waiting for its image."""
    mine = [pod for pod in pods if pod["metadata"]["labels"].get("kvfence.io/pool") == pool]
    containers = [one for pod in mine for one in pod["status"].get("containerStatuses", [])]
    states = [one.get(name, {}) for one in containers for name in ("state", "lastState")]
    ended = [datetime.fromisoformat(s["terminated"]["finishedAt"]).timestamp() for s in states if "terminated" in s]
    waits = any("Image" in state.get("waiting", {}).get("reason", "") for state in states)
    return min([*ended, *([time.time()] if waits else [])], default=0.0)
