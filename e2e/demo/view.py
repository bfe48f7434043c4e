"""What the API says about the pool and its pods, as values. Pure; what is not there yet is empty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvfence.render.identity import COMPONENT_LABEL, ROLE_LABEL, Component

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

GATES = (
    "EngineAllowed",
    "RolesReady",
    "ContextFits",
    "IntegrityEnforced",
    "IsolationVerified",
    "TrafficAdmitted",
)
"""The conditions that a pool goes through, in this order."""


@dataclass(frozen=True)
class Condition:
    """A condition of the pool."""

    type: str
    status: str
    reason: str
    message: str
    since: str
    """When its status changed last, as the API writes times."""


@dataclass(frozen=True)
class Pod:
    """A pod of the pool."""

    name: str
    role: str
    """`prefill` or `decode`; `router` for the router's."""
    running: bool
    """Its main container runs."""
    ready: bool
    """For an engine: its door is open."""
    restarts: int
    words: str
    """Its state for people."""


@dataclass(frozen=True)
class View:
    """The pool at one moment."""

    manifest: Mapping[str, Any]
    conditions: Mapping[str, Condition]
    """By type; only those that were judged from the spec as it is now."""
    pods: tuple[Pod, ...]

    def holds(self, condition: str) -> bool:
        """Whether a condition is True."""
        found = self.conditions.get(condition)
        return found is not None and found.status == "True"

    def reason(self, condition: str) -> str:
        """The reason of a condition; empty while there is none."""
        found = self.conditions.get(condition)
        return found.reason if found else ""

    @property
    def engines(self) -> tuple[Pod, ...]:
        """The pods that SGLang runs in."""
        return tuple(pod for pod in self.pods if pod.role != Component.ROUTER)

    @property
    def context(self) -> Mapping[str, Any]:
        """`status.contextLength`."""
        found: Mapping[str, Any] = (self.manifest.get("status") or {}).get("contextLength") or {}
        return found

    @property
    def roles(self) -> tuple[Mapping[str, Any], ...]:
        """`status.roles`, in the order of the spec."""
        order = [role["name"] for role in self.manifest["spec"]["roles"]]
        found: list[Mapping[str, Any]] = (self.manifest.get("status") or {}).get("roles") or []
        return tuple(sorted((role for role in found if role["name"] in order), key=lambda r: order.index(r["name"])))

    @property
    def replicas(self) -> int:
        """How many engines the pool is to have."""
        return sum(int(role.get("replicas", 1)) for role in self.manifest["spec"]["roles"])


def view(pool: Mapping[str, Any], pods: Iterable[Mapping[str, Any]]) -> View:
    """Read the pool and its pods as the API has them."""
    generation = pool["metadata"].get("generation")
    conditions = {
        one["type"]: Condition(
            one["type"], one["status"], one["reason"], one.get("message", ""), one.get("lastTransitionTime", "")
        )
        for one in (pool.get("status") or {}).get("conditions") or []
        if one.get("observedGeneration") == generation
    }
    there = [_pod(pod) for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    return View(pool, conditions, tuple(sorted(there, key=lambda pod: pod.name)))


def _pod(pod: Mapping[str, Any]) -> Pod:
    labels = pod["metadata"].get("labels") or {}
    status = pod.get("status") or {}
    engine = labels.get(COMPONENT_LABEL) == Component.ENGINE
    containers = status.get("containerStatuses") or []
    main = [one for one in containers if not engine or one["name"] == "engine"]
    return Pod(
        name=pod["metadata"]["name"],
        role=labels.get(ROLE_LABEL, "") if engine else str(labels.get(COMPONENT_LABEL, "")),
        running=bool(main) and all("running" in one.get("state", {}) for one in main),
        ready=any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or []),
        restarts=sum(int(one.get("restartCount", 0)) for one in containers),
        words=_words(status),
    )


def _words(status: Mapping[str, Any]) -> str:
    """What `kubectl get pods` would show as STATUS, and the message beside it."""
    for one in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        state = one.get("state") or {}
        found = state.get("waiting") or state.get("terminated") or {}
        if found.get("reason") and found["reason"] != "Completed":
            return f"{found['reason']}: {found['message']}" if found.get("message") else str(found["reason"])
    unmet = [one for one in status.get("conditions") or [] if one["status"] != "True" and one.get("message")]
    return f"{status.get('phase', 'Pending')}{': ' + unmet[0]['message'] if unmet else ''}"
