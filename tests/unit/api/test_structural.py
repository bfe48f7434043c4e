"""What has no structural schema is refused where it is declared, by the name of its field."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import Field, create_model

from kvfence.api.declaring import ATOMIC, Extended, Int32, Model, Rule, rules
from kvfence.api.structural import SchemaError, structural_schema

Text = Annotated[str, Field(max_length=8)]


def declared(annotation: Any, default: Any = ...) -> dict[str, Any]:
    """Return the schema of a field declared so."""
    model = create_model("Thing", __base__=Model, field=(annotation, default))
    properties: dict[str, Any] = structural_schema(model)["properties"]
    schema: dict[str, Any] = properties["field"]
    return schema


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (str, "Thing.field: a string needs maxLength"),
        (float, "Thing.field: the API has no floating-point numbers"),
        (int, "Thing.field: an integer needs a format and a minimum"),
        (Int32, "Thing.field: an integer needs a format and a minimum"),
        (Annotated[int, Field(ge=0)], "Thing.field: an integer needs a format and a minimum"),
        (tuple[Text, ...], "Thing.field: a list needs maxItems and a list type"),
        (Annotated[tuple[Text, ...], Field(max_length=2)], "Thing.field: a list needs maxItems and a list type"),
        (Annotated[tuple[Text, ...], ATOMIC], "Thing.field: a list needs maxItems and a list type"),
        (Annotated[tuple[str, ...], Field(max_length=2), ATOMIC], r"Thing.field\[\]: a string needs maxLength"),
        (dict[str, Text], "Thing.field: a map needs maxProperties"),
        (Annotated[dict[str, str], Field(max_length=2)], "Thing.field{}: a string needs maxLength"),
        (Text | Annotated[Int32, Field(ge=0)], "Thing.field: a structural schema has no choice of types"),
        (Annotated[str, Field(pattern="a", max_length=1)], "Thing.field: a structural schema has no pattern"),
    ],
)
def test_a_declaration_without_a_bound_or_a_shape_is_refused(annotation: Any, expected: str) -> None:
    with pytest.raises(SchemaError, match=expected):
        declared(annotation)


def test_a_field_that_may_be_absent_is_not_required_and_has_no_default() -> None:
    assert declared(Text | None, None) == {"type": "string", "maxLength": 8}


def test_a_reference_is_replaced_by_what_it_refers_to() -> None:
    inner = create_model("Inner", __base__=Model, name=(Text, "a"))
    assert declared(inner) == {
        "type": "object",
        "properties": {"name": {"type": "string", "default": "a", "maxLength": 8}},
    }


def test_the_default_of_an_object_is_empty_so_that_its_fields_get_theirs() -> None:
    inner = create_model("Inner", __base__=Model, name=(Text, "a"))
    assert declared(inner, inner())["default"] == {}


def test_rules_of_a_type_and_of_its_use_are_joined() -> None:
    base = Annotated[str, Field(max_length=8), Extended(Rule("self != 'a'", "field: choose another than a"))]
    schema = declared(Annotated[base, Extended(Rule("self != 'b'", "field: choose another than b"))])
    assert [rule["rule"] for rule in schema["x-kubernetes-validations"]] == ["self != 'a'", "self != 'b'"]


def test_a_rule_at_an_object_may_name_the_field_below() -> None:
    assert rules(Rule("true", "field: it is", ".field")) == {
        "x-kubernetes-validations": [{"rule": "true", "message": "field: it is", "fieldPath": ".field"}]
    }
