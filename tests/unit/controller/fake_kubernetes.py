"""An API server in memory, as far as the operator needs one: plain dicts, server-side apply of one manager."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

from kvfence.kube.client import Kubernetes, Object, Objects
from kvfence.kube.errors import Conflict, Invalid, KubernetesError, NotFound
from kvfence.kube.kinds import EVENT, POOL, Kind, kind_of

Writes = list[tuple[str, str, str]]
Place = tuple[str, str, str]
"""Kind, namespace and name."""


class FakeKubernetes(Kubernetes):
    """Keeps objects; `on_change` is called for each change of one that is no Event.

    Attributes:
        wrote: every request that writes: verb, kind and name.
        objects: what is there.
        fail: what the next requests answer instead, by verb and kind, such as `apply Deployment`.
    """

    def __init__(self, on_change: Callable[[Object], None] = lambda _: None) -> None:
        self.writes = 0
        self.wrote: list[tuple[str, str, str]] = []
        self.objects: dict[Place, Object] = {}
        self.fail: dict[str, KubernetesError] = {}
        self.on_change = on_change
        self.before_write: Callable[[], None] = lambda: None
        self._applied: dict[Place, Object] = {}
        self._numbers = itertools.count(1)

    async def list(self, kind: Kind, namespace: str | None, labels: str = "") -> Objects:
        self._may("list", kind)
        wanted = dict(part.split("=") for part in labels.split(",") if part)
        return [
            _copy(one)
            for (of, where, _), one in sorted(self.objects.items())
            if of == kind.kind
            and namespace in {None, where}
            and wanted.items() <= (one["metadata"].get("labels") or {}).items()
        ]

    async def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        self._may("get", kind)
        found: Object | None = _copy(self.objects.get((kind.kind, namespace, name)))
        return found

    async def apply(self, obj: Object) -> Object:
        place = self._write("apply", obj)
        live, before = self.objects.get(place), self._applied.get(place, {})
        if live is None:
            return self._put_new(place, obj)
        if place[0] == "ControllerRevision" and obj["data"] != live["data"]:
            raise Invalid(422, "Invalid", f"ControllerRevision {place[2]}: data is immutable")
        self._applied[place] = _copy(obj)
        return self._store(place, _merged(live, before, obj))

    async def apply_status(self, obj: Object) -> Object:
        place = self._write("apply_status", obj)
        live = self.objects.get(place)
        if live is None:
            raise NotFound(404, "NotFound", f"{place} is not there")
        if obj["metadata"].get("uid", live["metadata"]["uid"]) != live["metadata"]["uid"]:
            raise Conflict(409, "Conflict", f"{place} has another UID")
        return self._store(place, live | {"status": _copy(obj["status"])})

    async def create(self, obj: Object) -> Object | None:
        place = self._write("create", obj)
        return None if place in self.objects else self._put_new(place, obj)

    async def delete(self, kind: Kind, namespace: str, name: str, uid: str) -> bool:
        place = self._write("delete", {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": _meta(name)})
        place = (place[0], namespace, name)
        live = self.objects.get(place)
        if live is None or live["metadata"]["uid"] != uid:
            return False
        self.remove(place)
        return True

    async def annotate(self, kind: Kind, namespace: str, name: str, annotations: dict[str, str | None]) -> bool:
        self._write("annotate", {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": _meta(name)})
        live = self.objects.get((kind.kind, namespace, name))
        if live is None:
            return False
        changed = _copy(live)
        merged = (changed["metadata"].get("annotations") or {}) | annotations
        changed["metadata"]["annotations"] = {key: value for key, value in merged.items() if value is not None}
        self._store((kind.kind, namespace, name), changed)
        return True

    # --- what others do; not counted as the operator's ---

    def put(self, obj: Object) -> Object:
        """Have an object there, as somebody else made or changed it."""
        place = obj["kind"], obj["metadata"]["namespace"], obj["metadata"]["name"]
        return self._store(place, _copy(obj)) if place in self.objects else self._put_new(place, obj)

    def remove(self, place: Place) -> None:
        """Have an object gone, with everything that it owns."""
        gone = self.objects.pop(place)
        self._applied.pop(place, None)
        self.on_change(gone)
        uid = gone["metadata"]["uid"]
        for other, obj in list(self.objects.items()):
            if any(owner["uid"] == uid for owner in obj["metadata"].get("ownerReferences", ())):
                self.remove(other)

    def all(self, kind: Kind) -> Objects:
        """Return what is there of a kind."""
        return [one for (of, _, _), one in sorted(self.objects.items()) if of == kind.kind]

    def pool(self, name: str = "pool") -> Object:
        """Return the InferencePool."""
        return self.objects[POOL.kind, "ns", name]

    def wrote_since(self, count: int) -> Writes:
        """Return what was written after so many writes."""
        return self.wrote[count:]

    def _may(self, verb: str, kind: Kind) -> None:
        if error := self.fail.get(f"{verb} {kind}"):
            raise error

    def _write(self, verb: str, obj: Object) -> Place:
        kind = kind_of(obj)  # raises for what the operator has nothing to do with
        self.writes += 1
        self.before_write()
        self.wrote.append((verb, kind.kind, obj["metadata"]["name"]))
        self._may(verb, kind)
        return kind.kind, obj["metadata"]["namespace"], obj["metadata"]["name"]

    def _put_new(self, place: Place, obj: Object) -> Object:
        made = _copy(obj)
        self._applied[place] = _copy(obj)
        made["metadata"].setdefault("uid", f"uid-{next(self._numbers)}")
        return self._store(place, made)

    def _store(self, place: Place, obj: Object) -> Object:
        before = self.objects.get(place)
        if before is not None and _without_version(before) == _without_version(obj):
            return before | {}  # nothing changed: no new version, no event
        obj["metadata"]["resourceVersion"] = str(next(self._numbers))
        self.objects[place] = obj
        if place[0] != EVENT.kind:
            self.on_change(obj)
        kept: Object = _copy(obj)
        return kept


def _copy(value: Any) -> Any:
    return json.loads(json.dumps(value))  # as over the wire; and faster than a deep copy


def _meta(name: str) -> Object:
    return {"name": name, "namespace": "ns"}


def _without_version(obj: Object) -> Object:
    return obj | {"metadata": {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}}


def _merged(live: Any, before: Any, wanted: Any) -> Any:
    """What we say stands; what we said before and say no more goes; what others said stays. Lists go as a whole."""
    if not isinstance(live, dict) or not isinstance(wanted, dict):
        return _copy(wanted)
    ours = before if isinstance(before, dict) else {}
    kept = {key: value for key, value in live.items() if key in wanted or key not in ours}
    return kept | {key: _merged(live.get(key), ours.get(key), value) for key, value in wanted.items()}
