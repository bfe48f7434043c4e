"""The generated CRD: fresh, structural, small, explained, and with a sentence at every rule."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvfence.api.crd import crd_text, inference_pool_crd
from kvfence.api.v1alpha1.pool import InferencePool

COMMITTED = Path(__file__).resolve().parents[3] / "crds" / "kvfence.io_inferencepools.yaml"


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    version: dict[str, Any] = inference_pool_crd()["spec"]["versions"][0]
    whole: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return whole


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every node of a schema with its path."""
    yield path, schema
    for name, one in schema.get("properties", {}).items():
        yield from nodes(one, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key], f"{path}[]")


def test_the_committed_file_is_the_generated_one() -> None:
    assert COMMITTED.read_text() == crd_text(), "run `make generate`, and commit what it changes"


def test_the_command_prints_the_same() -> None:
    done = subprocess.run([sys.executable, "-m", "kvfence.api"], check=True, capture_output=True, text=True)
    assert done.stdout == crd_text()


def test_the_text_is_the_object() -> None:
    assert yaml.safe_load(crd_text()) == inference_pool_crd()


def test_client_side_apply_has_room_for_it_twice() -> None:
    # kubectl keeps a copy in an annotation, and annotations end at 262,144 bytes.
    assert len(crd_text().encode()) < 262_144 / 2


def test_every_field_is_explained(schema: dict[str, Any]) -> None:
    of_kubernetes = {".apiVersion", ".kind", ".metadata", ""}
    silent = [
        path
        for path, node in nodes(schema)
        if not path.endswith("[]") and path not in of_kubernetes and len(node.get("description", "")) < 10
    ]
    assert silent == []


def test_no_description_says_anything_of_python(schema: dict[str, Any]) -> None:
    words = ("pydantic", "str,", "None", "Args:", "`None`")
    assert [(path, w) for path, node in nodes(schema) for w in words if w in node.get("description", "")] == []


def test_every_rule_names_a_field_and_says_what_to_do(schema: dict[str, Any]) -> None:
    found = [(path, rule) for path, node in nodes(schema) for rule in node.get("x-kubernetes-validations", [])]
    assert len(found) > 30
    for path, rule in found:
        field, _, remedy = rule["message"].partition(": ")
        # at a list's item the field is the list; at an object it may be one below it
        last = rule.get("fieldPath", "").removeprefix(".") or path.removesuffix("[]").rsplit(".", 1)[-1]
        assert field.rsplit(".", 1)[-1] in (last, "name", "metadata"), (path, rule)
        assert len(remedy.split()) >= 4, rule
        assert "\n" not in rule["rule"] + rule["message"]


@pytest.mark.parametrize(
    "path", [".spec.roles", ".spec.engine.sglang.env", ".status.roles", ".spec.roles[].template.spec.volumes"]
)
def test_these_lists_are_told_apart_by_name(schema: dict[str, Any], path: str) -> None:
    node = dict(nodes(schema))[path]
    assert (node["x-kubernetes-list-type"], node["x-kubernetes-list-map-keys"]) == ("map", ["name"])


def test_conditions_are_told_apart_by_type(schema: dict[str, Any]) -> None:
    assert dict(nodes(schema))[".status.conditions"]["x-kubernetes-list-map-keys"] == ["type"]


def test_the_columns_show_what_is_there(schema: dict[str, Any]) -> None:
    paths = {path for path, _ in nodes(schema)}
    columns = inference_pool_crd()["spec"]["versions"][0]["additionalPrinterColumns"]
    for column in columns:
        path = column["jsonPath"].split("[?")[0]
        assert path in paths or path == ".metadata.creationTimestamp", column


def test_the_defaults_are_these_and_stay() -> None:
    # A default that changes would change what stored pools mean.
    spec = {
        "model": {"servedName": "m", "uri": "file:///m"},
        "engine": {"sglang": {"image": "i"}},
        "roles": [{"name": "p", "type": "Prefill"}, {"name": "d", "type": "Decode"}],
        "contextLength": {"requestedTokens": 8},
    }
    stored = InferencePool.model_validate({"spec": spec}).model_dump(mode="json", exclude_none=True)["spec"]
    role = {"replicas": 1, "parallelism": {"tensor": 1, "pipeline": 1, "data": 1}, "startupTimeoutSeconds": 3600}
    assert [{key: one[key] for key in role} for one in stored["roles"]] == [role, role]
    assert stored["engine"]["type"] == "SGLang"
    assert stored["router"] == {"replicas": 1}
    assert stored["disaggregation"] == {
        "transferBackend": "Mooncake",
        "bootstrapPort": 8998,
        "transferTimeoutSeconds": 300,
    }
    assert stored["contextLength"] == {
        "requestedTokens": 8,
        "reserveTokens": 0,
        "headroomPercent": 2,
        "policy": "CapToFit",
    }
    assert stored["integrity"] == dict.fromkeys(("kvChecksum", "pageTagging", "pageScrubbing", "coverage"), "Enforce")
    assert stored["strategy"] == {"type": "Recreate"}
