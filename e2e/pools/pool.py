"""Pools on the stage: made from the first example, watched as people watch them, and asked."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from e2e.cluster.waiting import wait_for
from e2e.errors import StageError
from e2e.pools import inside
from e2e.pools.asking import Place, ask_pair

if TYPE_CHECKING:
    from collections.abc import Mapping

    from e2e.cluster.stage import Stage
    from e2e.said import Said

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "01-first-pool" / "pool.yaml"
KIND = "inferencepools.kvfence.io"
ADMITTED_SECONDS = 600.0
"""A pair takes 25 s alone on two idle cores, and 100 s when others are at work."""

SERVICE_PORT, ENGINE_PORT, DOOR_PORT, FRONT_PORT, ROUTER_PORT, BOOTSTRAP_PORT = 80, 30000, 8901, 8080, 30080, 8998


def example(name: str, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the example's pool with another name and a changed spec.

    Args:
        name: of the pool.
        changes: to the spec, merged into it; what is None is removed. In a list of things with names they go by name,
            and in a list of flags by flag: `{"roles": {"prefill": {"args": {"--max-total-tokens": "2048"}}}}`.
    """
    pool: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    pool["metadata"]["name"] = name
    pool["spec"] = _merged(pool["spec"], changes or {})
    return pool


@dataclass(frozen=True)
class Pool:
    """A pool that was applied."""

    stage: Stage
    namespace: str
    name: str

    @classmethod
    def apply(cls, stage: Stage, namespace: str, manifest: Mapping[str, Any]) -> Pool:
        """Apply it, as `kubectl apply` does; wait for nothing."""
        stage.kubectl.run("apply", "--namespace", namespace, "--filename", "-", given=json.dumps(manifest))
        return cls(stage, namespace, manifest["metadata"]["name"])

    def get(self) -> dict[str, Any]:
        """The object as it is now."""
        return self.stage.kubectl.get(KIND, self.name, "--namespace", self.namespace)

    def delete(self) -> None:
        """Delete it, and wait as `kubectl delete` does."""
        self.stage.kubectl.run("delete", KIND, self.name, "--namespace", self.namespace, "--timeout=60s")

    def status(self) -> dict[str, Any]:
        """The status; empty while there is none."""
        status: dict[str, Any] = self.get().get("status", {})
        return status

    def conditions(self) -> dict[str, dict[str, Any]]:
        """The conditions, by type."""
        return {one["type"]: one for one in self.status().get("conditions", [])}

    def wait_for_condition(
        self, kind: str, status: str = "True", reason: str = "", seconds: float = ADMITTED_SECONDS
    ) -> dict[str, Any]:
        """Wait until a condition has a status, and a reason if one is named; return it.

        Raises:
            StageError: not in time; the message has all conditions and the pods.
        """
        found: dict[str, Any] = {}

        def holds() -> bool:
            found.update(self.conditions().get(kind, {}))
            return found.get("status") == status and (not reason or found["reason"] == reason)

        try:
            what = f"condition {kind} of pool {self.name} to be {status} {reason}".rstrip()
            wait_for(what, holds, seconds, every=0.5)
        except StageError as error:
            raise StageError(f"{error}\n{self.described()}") from error
        return found

    def described(self) -> str:
        """Conditions and pods in lines for people."""
        lines = [
            f"  {one['type']}={one['status']} {one['reason']}: {one['message']}" for one in self.conditions().values()
        ]
        for pod in self.pods():
            lines.append(f"  pod {pod['metadata']['name']} {pod['status']['phase']} {pod['status'].get('podIP', '')}")
            for one in pod["status"].get("initContainerStatuses", []) + pod["status"].get("containerStatuses", []):
                state = json.dumps(one["state"])
                lines.append(f"    {one['name']} ready={one['ready']} restarts={one['restartCount']} {state}")
        return "\n".join(lines or ["  no conditions, no pods"])

    def pods(self, *labels: str) -> list[dict[str, Any]]:
        """Its pods, those that have the labels too: `kvfence.io/role=prefill`. In the order of their names."""
        selector = ",".join([f"kvfence.io/pool={self.name}", *labels])
        found = self.stage.kubectl.get("pods", "--namespace", self.namespace, f"--selector={selector}")["items"]
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))

    def engines(self, role: str = "") -> list[dict[str, Any]]:
        """The pods of its engines, of one role or of all."""
        return self.pods("kvfence.io/component=engine", *([f"kvfence.io/role={role}"] if role else []))

    def routers(self) -> list[dict[str, Any]]:
        """The pods of its routers."""
        return self.pods("kvfence.io/component=router")

    def service(self) -> Place:
        """Where its users ask: the Service's address."""
        service = self.stage.kubectl.get("service", self.name, "--namespace", self.namespace)
        return Place("service", service["spec"]["clusterIP"], SERVICE_PORT)

    def front(self) -> Place:
        """The front of its first router, at the pod's address."""
        return Place("front", self.routers()[0]["status"]["podIP"], FRONT_PORT)

    def behind_the_front(self) -> Place:
        """The router itself, which listens on the loopback of its pod alone."""
        pod = self.routers()[0]
        through = inside.network(inside.processes(pod["metadata"]["uid"])[0])
        return Place("router", "127.0.0.1", ROUTER_PORT, through)

    def legs(self) -> dict[str, Place]:
        """The first engine of each role."""
        return {role: self.leg(self.engines(role)[0]) for role in ("prefill", "decode")}

    def leg(self, pod: Mapping[str, Any]) -> Place:
        """An engine."""
        return Place(pod["metadata"]["name"], pod["status"]["podIP"], ENGINE_PORT, inside.network(self.stage.node.pid))

    def door(self, pod: Mapping[str, Any]) -> dict[str, Any]:
        """What the door of an engine says of itself."""
        through = inside.network(self.stage.node.pid)
        place = Place(pod["metadata"]["name"], pod["status"]["podIP"], DOOR_PORT, through)
        status: dict[str, Any] = place.ask("/status", seconds=10.0).json
        return status

    def ask_pair(self, body: Mapping[str, Any]) -> dict[str, Said]:
        """Ask the first engine of each role for the same at once, as a router does."""
        legs = self.legs()
        return ask_pair(legs, (legs["prefill"].address, BOOTSTRAP_PORT), body)


def _merged(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        both = {key: _merged(old.get(key), value) for key, value in new.items()}
        return {key: value for key, value in {**old, **both}.items() if value is not None}
    if isinstance(old, list) and isinstance(new, dict):
        return _flags(old, new) if all(isinstance(one, str) for one in old) else _named(old, new)
    return deepcopy(new)


def _named(old: list[dict[str, Any]], new: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = [*(one["name"] for one in old), *new]
    things = {one["name"]: one for one in old}
    merged = {name: _merged(things.get(name, {"name": name}), new.get(name, {})) for name in dict.fromkeys(names)}
    return [one for name, one in merged.items() if new.get(name, {}) is not None]


def _flags(old: list[str], new: Mapping[str, str | None]) -> list[str]:
    kept = [flag for flag in old if flag.partition("=")[0] not in new]
    return [*kept, *(f"{flag}={value}" if value else flag for flag, value in new.items() if value is not None)]
