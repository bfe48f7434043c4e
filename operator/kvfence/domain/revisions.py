"""A revision: the name of what a user set that concerns the engines. Another name means other engines.

What does not change an engine is not in it: replicas, the cap, the router, how a new revision is brought in, and the
operator's own version. Defaults are left out, so that a field which is added later changes no hash while it has its
default.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvfence.api.v1alpha1.pool import PoolSpec, Role

HASH_VERSION = 1
"""Raised when the same pool has to get another hash. That restarts the engines of every pool."""

HASH_LENGTH = 10
"""Characters of a hash, five bits each: as much as the names of a revision's objects have room for."""


def start_tokens(spec: PoolSpec) -> int:
    """Return the context length, in tokens, that engines are started with: what was asked for, if the model has it."""
    requested, of_the_model = spec.context_length.requested_tokens, spec.model.max_context_tokens
    return requested if of_the_model is None else min(requested, of_the_model)


def revision_hash(spec: PoolSpec) -> str:
    """Return the name of the revision that this spec asks for: 10 characters of a-z and 2-7."""
    canonical = json.dumps(_content(spec), sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode()).digest()
    return base64.b32encode(digest).decode().lower()[:HASH_LENGTH]


def _content(spec: PoolSpec) -> dict[str, Any]:
    """Return what is hashed. Whole parts with exceptions, so that a field that comes later is in it by itself."""
    model = spec.model.model_dump(mode="json", exclude_defaults=True, exclude={"max_context_tokens"})
    gates = {"sglang": {"version", "minimum_version"}}  # they judge an engine, and change none
    engine = spec.engine.model_dump(mode="json", exclude_defaults=True, exclude=gates)
    _sort(engine["sglang"], "env", "name")
    return {
        "hashVersion": HASH_VERSION,
        "model": model,
        "startTokens": start_tokens(spec),
        "engine": engine,
        "roles": [_role(role) for role in sorted(spec.roles, key=lambda role: role.name)],
        "disaggregation": spec.disaggregation.model_dump(mode="json", exclude_defaults=True),
        "integrity": spec.integrity.model_dump(mode="json", exclude_defaults=True),
    }


def _role(role: Role) -> dict[str, Any]:
    content = role.model_dump(mode="json", exclude_defaults=True, exclude={"replicas"})
    pod = content.get("template", {}).get("spec", {})
    for name in ("volumes", "imagePullSecrets", "containers"):
        _sort(pod, name, "name")
    for container in pod.get("containers", []):
        _sort(container, "volumeMounts", "mountPath")
        for amounts in container.get("resources", {}).values():  # 1 and "1" are the same quantity
            amounts.update({name: str(amount) for name, amount in amounts.items()})
    return content


def _sort(where: dict[str, Any], name: str, key: str) -> None:
    """Put a list that is a map into one order; with the item itself as the last word where two have the same key."""
    if name in where:
        where[name] = sorted(where[name], key=lambda item: (item[key], json.dumps(item, sort_keys=True)))
