"""The revision's hash: what changes it restarts engines, and what does not must never change it."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from kvfence.api.v1alpha1.engine import ModelSource, SGLang
from kvfence.api.v1alpha1.pool import PoolSpec, Role
from kvfence.domain.revisions import revision_hash, start_tokens

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SPEC: dict[str, Any] = {
    "model": {"servedName": "tiny", "uri": "file:///models/tiny"},
    "engine": {"sglang": {"image": "registry.example/sglang:v0.5.23", "args": ["--page-size", "16"]}},
    "roles": [{"name": "prefill", "type": "Prefill"}, {"name": "decode", "type": "Decode"}],
    "contextLength": {"requestedTokens": 4096},
}
FULL: dict[str, Any] = {
    "model": {
        "servedName": "org/model",
        "uri": "hf://org/model",
        "commit": COMMIT,
        "tokenSecretRef": {"name": "token", "key": "hf"},
        "maxContextTokens": 131_072,
    },
    "engine": {
        "sglang": {
            "image": "registry.example/sglang@sha256:" + "a" * 64,
            "version": "0.5.23",
            "pluginVersion": "0.1.0",
            "args": ["--page-size", "16"],
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        }
    },
    "roles": [
        {
            "name": "prefill",
            "type": "Prefill",
            "replicas": 2,
            "parallelism": {"tensor": 2},
            "args": ["--chunked-prefill-size", "8192"],
            "template": {
                "spec": {
                    "volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "hostPath": {"path": "/dev/x"}}],
                    "imagePullSecrets": [{"name": "one"}, {"name": "two"}],
                    "containers": [
                        {
                            "name": "engine",
                            "resources": {"limits": {"nvidia.com/gpu": 2, "memory": "100Gi"}},
                            "volumeMounts": [{"name": "a", "mountPath": "/a"}, {"name": "b", "mountPath": "/b"}],
                        }
                    ],
                }
            },
        },
        {"name": "decode", "type": "Decode", "startupTimeoutSeconds": 600},
    ],
    "disaggregation": {"transferTimeoutSeconds": 60},
    "contextLength": {"requestedTokens": 1_048_576},
    "integrity": {"kvChecksum": "Observe"},
}


def hashed(spec: dict[str, Any]) -> str:
    return revision_hash(PoolSpec.model_validate(spec))


def changed(path: str, value: Any, given: dict[str, Any] | None = None) -> dict[str, Any]:
    result = copy.deepcopy(given or SPEC)
    *parents, last = path.split(".")
    node: Any = result
    for part in parents:
        node = node[int(part)] if isinstance(node, list) else node.setdefault(part, {})
    node[int(last) if isinstance(node, list) else last] = value
    return result


def test_the_hashes_of_two_pools_are_what_they_always_were() -> None:
    # A change here restarts every engine of every user on an upgrade of the operator. It needs a new HASH_VERSION.
    assert hashed(SPEC) == "wq2hcncw7j"
    assert hashed(FULL) == "gyron5geyd"


def test_a_hash_fits_into_names_and_labels() -> None:
    assert all(re.fullmatch("[a-z0-9]{10}", hashed(changed("model.servedName", f"m{n}"))) for n in range(50))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model.servedName", "other"),
        ("model.uri", "file:///models/other"),
        ("model.maxContextTokens", 2048),  # the engines are started with less
        ("contextLength.requestedTokens", 8192),
        ("engine.sglang.image", "registry.example/sglang:v0.5.24"),
        ("engine.sglang.args", ["--page-size", "1"]),
        ("engine.sglang.args", ["16", "--page-size"]),
        ("engine.sglang.env", [{"name": "A", "value": "1"}]),
        ("engine.sglang.env", [{"name": "A"}]),
        ("engine.sglang.pluginVersion", "0.1.0"),
        ("roles.0.name", "other"),
        ("roles.1.type", "Prefill"),
        ("roles.0.parallelism.tensor", 2),
        ("roles.0.parallelism.pipeline", 2),
        ("roles.0.parallelism.data", 2),
        ("roles.0.args", ["--x"]),
        ("roles.0.startupTimeoutSeconds", 600),
        ("roles.0.template.metadata.labels", {"a": "b"}),
        ("roles.0.template.spec.affinity", {"podAntiAffinity": {}}),
        ("roles.0.template.spec.volumes", [{"name": "a", "emptyDir": {}}]),
        ("roles", [*SPEC["roles"], {"name": "decode-b", "type": "Decode"}]),
        ("disaggregation.bootstrapPort", 9000),
        ("disaggregation.transferTimeoutSeconds", 60),
        ("integrity.kvChecksum", "Observe"),
    ],
)
def test_what_concerns_the_engines_makes_another_revision(path: str, value: Any) -> None:
    assert hashed(changed(path, value)) != hashed(SPEC)


@pytest.mark.parametrize(
    ("path", "value"),
    [("model.commit", "f" * 40), ("model.tokenSecretRef.key", "other"), ("model.tokenSecretRef.name", "other")],
)
def test_where_a_model_is_fetched_from_makes_another_revision(path: str, value: Any) -> None:
    assert hashed(changed(path, value, FULL)) != hashed(FULL)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("roles.0.replicas", 5),
        ("router", {"replicas": 3, "image": "registry.example/smg:2"}),
        ("strategy", {"type": "Recreate"}),
        ("contextLength.minimumTokens", 100),
        ("contextLength.reserveTokens", 100),
        ("contextLength.headroomPercent", 10),
        ("contextLength.policy", "RequireFit"),
        ("model.maxContextTokens", 4096),  # no less than what was asked for
        ("engine.sglang.version", "0.5.23"),  # gates
        ("engine.sglang.minimumVersion", "0.5.23"),
        # what is the default anyway
        ("engine.type", "SGLang"),
        ("roles.0.startupTimeoutSeconds", 3600),
        ("roles.0.parallelism", {"tensor": 1, "pipeline": 1}),
        ("roles.0.args", []),
        ("disaggregation", {"transferBackend": "Mooncake", "bootstrapPort": 8998}),
        ("integrity", {"kvChecksum": "Enforce"}),
        ("engine.sglang.env", []),
        ("roles", SPEC["roles"][::-1]),
    ],
)
def test_what_does_not_concern_the_engines_restarts_none(path: str, value: Any) -> None:
    assert hashed(changed(path, value)) == hashed(SPEC)


@pytest.mark.parametrize(
    "path",
    [
        "roles",
        "engine.sglang.env",
        "roles.0.template.spec.volumes",
        "roles.0.template.spec.imagePullSecrets",
        "roles.0.template.spec.containers.0.volumeMounts",
    ],
)
def test_the_order_of_a_list_that_is_a_map_does_not_count(path: str) -> None:
    node: Any = FULL
    for part in path.split("."):
        node = node[int(part)] if isinstance(node, list) else node[part]
    assert len(node) > 1
    assert hashed(changed(path, node[::-1], FULL)) == hashed(FULL)


def test_a_quantity_is_the_same_as_a_number_and_as_text() -> None:
    limits = "roles.0.template.spec.containers.0.resources.limits"
    assert hashed(changed(limits, {"nvidia.com/gpu": "2", "memory": "100Gi"}, FULL)) == hashed(FULL)
    assert hashed(changed(limits, {"nvidia.com/gpu": 4, "memory": "100Gi"}, FULL)) != hashed(FULL)


def test_an_empty_selector_is_not_the_same_as_none() -> None:
    # in an affinity, {} chooses everything and nothing chooses nothing
    some = changed("roles.0.template.spec.affinity", {"podAffinity": {"namespaceSelector": {}}})
    assert hashed(some) != hashed(changed("roles.0.template.spec.affinity", {"podAffinity": {}}))


def test_a_new_field_gets_its_place() -> None:
    # Parts of the spec are hashed as a whole, and a new field counts as one that concerns the engines. A new *part*
    # does not: whoever adds one decides it in `revisions`, and then here.
    parts = {"model", "engine", "roles", "disaggregation", "context_length", "integrity"}  # of the hash
    parts |= {"router", "strategy", "advisories"}
    assert set(PoolSpec.model_fields) == parts
    assert {"version", "minimum_version"} <= set(SGLang.model_fields)
    assert "replicas" in Role.model_fields
    assert "max_context_tokens" in ModelSource.model_fields


@pytest.mark.parametrize(("requested", "of_the_model", "tokens"), [(10, None, 10), (10, 20, 10), (30, 20, 20)])
def test_engines_are_started_with_what_was_asked_for_as_far_as_the_model_goes(
    requested: int, of_the_model: int | None, tokens: int
) -> None:
    spec = changed("contextLength.requestedTokens", requested)
    if of_the_model is not None:
        spec = changed("model.maxContextTokens", of_the_model, spec)
    assert start_tokens(PoolSpec.model_validate(spec)) == tokens
