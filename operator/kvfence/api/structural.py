"""Turns the JSON schema of a model into what Kubernetes calls a structural schema, or says where that cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel

REFERENCE = "#/$defs/"

KEPT = (
    *("description", "type", "format", "default", "enum"),
    *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "maxProperties"),
    *("x-kubernetes-int-or-string", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"),
    *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"),
    *("required", "properties", "items", "additionalProperties"),
)
"""What a structural schema may say, in the order in which it is written."""
DROPPED = {"title", "$defs"}


class SchemaError(ValueError):
    """A declaration that has no structural schema, or one without the bounds that CEL's budget needs."""


def structural_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the structural schema of a model.

    Without `$ref`, `anyOf` and null: a field that may be absent is a field that is not required. Every string, list and
    map has an upper bound and every integer a format.

    Raises:
        SchemaError: names the field and what its declaration lacks.
    """
    raw = model.model_json_schema(by_alias=True, mode="validation")
    return _Translation(raw.get("$defs", {})).of(raw, model.__name__)


class _Translation:
    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions

    def of(self, raw: dict[str, Any], path: str) -> dict[str, Any]:
        """Return the schema of one node; `path` names it in an error."""
        schema = {key: value for key, value in self._resolved(raw, path).items() if key not in DROPPED}
        if unknown := schema.keys() - set(KEPT):
            raise SchemaError(f"{path}: a structural schema has no {', '.join(sorted(unknown))}")
        if "description" in schema:
            schema["description"] = " ".join(schema["description"].split())
        _check_bounds(schema, path)
        if "properties" in schema:
            schema["properties"] = {name: self.of(one, f"{path}.{name}") for name, one in schema["properties"].items()}
        if "items" in schema:
            schema["items"] = self.of(schema["items"], f"{path}[]")
        self._open_or_closed(schema, path)
        _default(schema)
        return {key: schema[key] for key in KEPT if key in schema}

    def _resolved(self, raw: dict[str, Any], path: str) -> dict[str, Any]:
        """Return the node with what it refers to in its place; what stands beside the reference wins."""
        node = dict(raw)
        if "anyOf" in node:
            choices = [one for one in node.pop("anyOf") if one != {"type": "null"}]
            if len(choices) != 1:
                raise SchemaError(f"{path}: a structural schema has no choice of types")
            node = {**choices[0], **node}
        if "$ref" in node:
            target = self._definitions[node.pop("$ref").removeprefix(REFERENCE)]
            node = {**self._resolved(target, path), **node}
        if "const" in node:
            node["enum"] = [node.pop("const")]
        return node

    def _open_or_closed(self, schema: dict[str, Any], path: str) -> None:
        """Closed needs no word in Kubernetes, open has one of its own, and a map keeps the schema of its values."""
        extra = schema.pop("additionalProperties", False)
        if extra is True:
            schema["x-kubernetes-preserve-unknown-fields"] = True
        elif isinstance(extra, dict):
            if "maxProperties" not in schema:
                raise SchemaError(f"{path}: a map needs maxProperties")
            schema["additionalProperties"] = self.of(extra, f"{path}{{}}")


def _check_bounds(schema: dict[str, Any], path: str) -> None:
    match schema:
        case {"type": "string"} if not schema.keys() & {"maxLength", "enum", "format"}:
            raise SchemaError(f"{path}: a string needs maxLength")
        case {"type": "array"} if "maxItems" not in schema or "x-kubernetes-list-type" not in schema:
            raise SchemaError(f"{path}: a list needs maxItems and a list type")
        case {"type": "integer"} if not schema.keys() >= {"format", "minimum"}:
            raise SchemaError(f"{path}: an integer needs a format and a minimum")
        case {"type": "number"}:
            raise SchemaError(f"{path}: the API has no floating-point numbers")
        case _:
            pass


def _default(schema: dict[str, Any]) -> None:
    """An object's default is empty: the API server fills in those of its fields. No value is no default."""
    if "default" not in schema:
        return
    if schema["default"] is None or schema["default"] == []:
        del schema["default"]
    elif schema.get("type") == "object":
        schema["default"] = {}
