"""What the models of the API are declared with: their base class, CEL rules, and the types that a schema may hold.

A model's docstring and the docstring under a field become the text of `kubectl explain`.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, GetJsonSchemaHandler, JsonValue, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

VALIDATIONS = "x-kubernetes-validations"


class Model(BaseModel):
    """An object of the API. Immutable; a field that it does not know is an error, not ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
    )


@dataclass(frozen=True, slots=True)
class Rule:
    """One CEL rule of the CRD."""

    expression: str
    """True for what is accepted. `self` is what the rule stands at."""
    message: str
    """Names the field, and says what to do."""
    field: str = ""
    """The field below `self` that is to blame, such as `.commit`; of the rules at a model only."""

    def as_schema(self) -> dict[str, str]:
        """Return the rule as the CRD has it."""
        where = {"fieldPath": self.field} if self.field else {}
        return {"rule": self.expression, "message": self.message, **where}


def rules(*given: Rule) -> dict[str, Any]:
    """Return `json_schema_extra` of a model that these rules stand at."""
    return {VALIDATIONS: [rule.as_schema() for rule in given]}


class Extended:
    """Adds keys to the schema of what it annotates; lists of rules are joined."""

    def __init__(self, *given: Rule, **keys: Any) -> None:
        self._rules = [rule.as_schema() for rule in given]
        self._keys = {name.replace("_", "-"): value for name, value in keys.items()}

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the schema of what is annotated, with the keys in it."""
        schema = {**handler(core), **self._keys}
        if self._rules:
            schema[VALIDATIONS] = [*schema.get(VALIDATIONS, []), *self._rules]
        return schema


Int32 = Annotated[int, Extended(format="int32")]
Int64 = Annotated[int, Extended(format="int64")]

SHORTEST_CONTEXT = 8
"""The smallest context length under which SGLang takes a prompt, of one token."""

Tokens = Annotated[Int64, Field(ge=SHORTEST_CONTEXT, le=2**40)]
"""A context length. The upper bound is a million times what models offer, and keeps sums far from 2**63."""

Time = AwareDatetime
"""RFC 3339 with its offset."""

Open = Annotated[dict[str, JsonValue], WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})]
"""A part of a pod that is handed on as it is; the API server judges it when the pod is made."""

Quantity = Annotated[int | str, WithJsonSchema({"x-kubernetes-int-or-string": True})]
"""A Kubernetes quantity, such as 8 or 100Gi."""

AS_MAP = Extended(x_kubernetes_list_type="map", x_kubernetes_list_map_keys=["name"])
"""A list whose items are told apart by `name`."""
ATOMIC = Extended(x_kubernetes_list_type="atomic")
"""A list that one owner sets as a whole, in an order that counts."""
