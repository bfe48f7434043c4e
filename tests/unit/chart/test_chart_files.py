"""The chart as files, without helm: it follows the operator's version and CRD; values, schema and templates agree."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.version import Version

import kvfence

ROOT = Path(__file__).resolve().parents[3]
CHART = ROOT / "charts" / "kvfence"
CRD = "kvfence.io_inferencepools.yaml"
OF_KUBERNETES = {"resources", "nodeSelector", "affinity", "podAnnotations"}
"""Values that go into the pod as they are: what is in them is not the chart's."""


@pytest.fixture(scope="module")
def chart() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((CHART / "Chart.yaml").read_text())
    return loaded


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
    return loaded


@pytest.fixture(scope="module")
def values() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    return loaded


def as_semver(version: str) -> str:
    """A Python version as semver writes it: 0.1.0.dev0 is 0.1.0-dev.0."""
    parsed = Version(version)
    assert parsed.pre is None, "write down here how semver says a release candidate, once there is one"
    return parsed.base_version + (f"-dev.{parsed.dev}" if parsed.is_devrelease else "")


def leaves(values: dict[str, Any], above: str = "") -> Iterator[str]:
    """Paths of what can be set: `image.repository`."""
    for name, value in values.items():
        if isinstance(value, dict) and value and name not in OF_KUBERNETES:
            yield from leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}"


def open_objects(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Paths of objects in which any name is accepted."""
    if schema.get("type") == "object" and schema.get("additionalProperties", True) is True:
        yield path
    for name, one in schema.get("properties", {}).items():
        yield from open_objects(one, f"{path}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from open_objects(schema["items"], f"{path}[]")


def test_the_copy_of_the_crd_is_the_committed_one() -> None:
    assert (CHART / "files" / CRD).read_bytes() == (ROOT / "crds" / CRD).read_bytes(), "run `make generate`"


def test_the_versions_are_the_operators(chart: dict[str, Any]) -> None:
    assert chart["appVersion"] == kvfence.__version__
    assert chart["version"] == as_semver(kvfence.__version__)


@pytest.mark.parametrize(("python", "semver"), [("0.1.0.dev0", "0.1.0-dev.0"), ("1.2.3", "1.2.3")])
def test_a_python_version_has_one_form_in_semver(python: str, semver: str) -> None:
    assert as_semver(python) == semver


def test_the_app_version_can_be_an_images_tag(chart: dict[str, Any]) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", chart["appVersion"])


def test_every_value_is_in_the_schema_and_every_name_of_the_schema_has_a_value(
    schema: dict[str, Any], values: dict[str, Any]
) -> None:
    def names(one: dict[str, Any], above: str = "") -> Iterator[str]:
        for name, inner in one["properties"].items():
            if "properties" in inner and name not in OF_KUBERNETES:
                yield from names(inner, f"{above}{name}.")
            else:
                yield f"{above}{name}"

    assert set(leaves(values)) == set(names(schema)) - {"global"}


def test_the_schema_takes_unknown_names_only_where_kubernetes_judges_them(schema: dict[str, Any]) -> None:
    affinity = {f".affinity.{kind}" for kind in ("nodeAffinity", "podAffinity", "podAntiAffinity")}
    assert set(open_objects(schema)) == {".global", *affinity}


def test_an_open_object_is_seen() -> None:
    closed: dict[str, Any] = {"type": "object", "additionalProperties": False}
    planted = {**closed, "properties": {"a": {"type": "array", "items": {"type": "object"}}, "b": closed}}
    planted["properties"]["c"] = {"type": "object", "additionalProperties": True}
    assert list(open_objects(planted)) == [".a[]", ".c"]


def test_every_value_is_read_by_a_template(values: dict[str, Any]) -> None:
    templates = "\n".join(path.read_text() for path in sorted((CHART / "templates").iterdir()))
    images = {"image", "routerImage", "frontImage"}  # repository, tag and digest are read by kvfence.image
    top_levels = {path.split(".")[0] if path.split(".")[0] in images else path for path in leaves(values)}
    assert {path for path in top_levels if not re.search(rf"\.Values\.{re.escape(path)}\b", templates)} == set()


def test_every_group_of_values_is_explained() -> None:
    blocks = (CHART / "values.yaml").read_text().split("\n\n")[1:]
    assert len(blocks) > 10
    assert [block for block in blocks if not block.startswith("# -- ")] == []


def test_no_image_names_a_registry(values: dict[str, Any]) -> None:
    repositories = [values[name]["repository"] for name in ("image", "engineImage", "routerImage", "frontImage")]
    assert repositories == ["kvfence/operator", "kvfence/kvfence-engine", "kvfence/router", ""]


def test_no_rule_of_rbac_has_a_wildcard() -> None:
    rules = [path.read_text() for path in sorted((CHART / "templates").glob("*")) if "verbs:" in path.read_text()]
    assert rules
    assert [text for text in rules if re.search(r"\[.*\*.*\]|- ['\"]?\*", text)] == []
