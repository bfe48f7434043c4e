"""Pools for the tests of what is made of them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from kvfence.api.v1alpha1.pool import NAME_LENGTH, ROLE_NAME_LENGTH, PoolSpec, Role
from kvfence.render.identity import Manifest, PoolIdentity
from kvfence.render.settings import Installation

UID = "11111111-2222-3333-4444-555555555555"
REVISION = "abcdefghij"
POOL = PoolIdentity("chat", "team-a", UID)
LONGEST = PoolIdentity("p" * NAME_LENGTH, "team-a", UID)
LONGEST_ROLE = "r" * ROLE_NAME_LENGTH
COMMIT = "0123456789abcdef0123456789abcdef01234567"
INSTALLATION = Installation(
    engine_image_repository="registry.example/kvfence-engine",
    plugin_version="0.1.0",
    router_image="registry.example/smg:1.13.0",
    front_image="registry.example/nginx:1",
    operator_namespace="kvfence-system",
    operator_labels={"app.kubernetes.io/name": "kvfence-operator"},
)
INJECTION_IMAGE = INSTALLATION.injection_image()

SPEC: dict[str, Any] = {
    "model": {"servedName": "tiny", "uri": "file:///models/tiny"},
    "engine": {"sglang": {"image": "registry.example/sglang:v0.5.23"}},
    "roles": [{"name": "prefill", "type": "Prefill"}, {"name": "decode", "type": "Decode"}],
    "contextLength": {"requestedTokens": 4096},
}


def spec(**changes: Any) -> PoolSpec:
    """The smallest pool, but for the parts that are given: `roles__0={"replicas": 2}` is for the first role."""
    made = copy.deepcopy(SPEC)
    for path, value in changes.items():
        node: Any = made
        *parents, last = path.split("__")
        for part in parents:
            node = node[int(part)] if isinstance(node, list) else node.setdefault(part, {})
        if isinstance(node, list):
            node[int(last)] |= value
        elif isinstance(value, dict) and last in node:
            node[last] |= value
        else:
            node[last] = value
    return PoolSpec.model_validate(made)


def role(spec: PoolSpec, name: str = "prefill") -> Role:
    """One role of it."""
    return next(role for role in spec.roles if role.name == name)


def walk(node: Any) -> Iterator[Manifest]:
    """All objects in an object."""
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from walk(value)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from walk(value)
