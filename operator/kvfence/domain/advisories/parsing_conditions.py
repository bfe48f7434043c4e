"""Reads conditions: `{"all": [{"role": ["Prefill"]}, {"setting": "enable_hierarchical_cache", "truthy": true}]}`."""

from __future__ import annotations

import math
import re
from typing import Any

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.advisories import reading
from kvfence.domain.advisories.conditions import (
    AllOf,
    AnyOf,
    Asked,
    Condition,
    InRole,
    Not,
    Operator,
    Place,
    Scalar,
    Value,
    WithBackend,
)

DEEPEST = 6
MOST_PARTS = 16
WORD_LENGTH = 64
ASKED_LENGTH = 200
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def condition(value: object, depth: int = 0) -> Condition:
    """Return the condition that a document says.

    Raises:
        ValueError: it is none, or goes too deep.
    """
    if depth > DEEPEST:
        raise ValueError(f"its condition is more than {DEEPEST} deep")
    entry = reading.of_mapping(value, "a condition")
    for place in Place:
        if place in entry:
            return _value(entry, place)
    if len(entry) != 1:
        raise ValueError("a condition has to be one of all, any, not, role, backend, asked, setting and environment")
    ((kind, operand),) = entry.items()
    return _grouped(kind, operand, depth)


def _grouped(kind: str, operand: object, depth: int) -> Condition:
    match kind:
        case "all":
            return AllOf(_parts(operand, depth))
        case "any":
            return AnyOf(_parts(operand, depth))
        case "not":
            return Not(condition(operand, depth + 1))
    return _plain(kind, operand)


def _plain(kind: str, operand: object) -> Condition:
    match kind:
        case "role":
            return InRole(tuple(_role(one) for one in reading.of_list(operand, "role", len(RoleType))))
        case "backend":
            names = reading.of_list(operand, "backend", MOST_PARTS)
            return WithBackend(tuple(reading.line(one, "a backend", WORD_LENGTH) for one in names))
        case "asked":
            return Asked(reading.line(operand, "asked", ASKED_LENGTH))
    raise ValueError(f"a condition has a field {reading.shown(kind)} that is not known here")


def _parts(value: object, depth: int) -> tuple[Condition, ...]:
    return tuple(condition(one, depth + 1) for one in reading.of_list(value, "all or any", MOST_PARTS))


def _role(value: object) -> RoleType:
    if not isinstance(value, str) or value not in set(RoleType):
        raise ValueError(f"a role is none of {', '.join(RoleType)}")
    return RoleType(value)


def _value(entry: dict[str, Any], place: Place) -> Value:
    name = entry[place]
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(f"the name of a {place} is none")
    others = [field for field in entry if field != place]
    if len(others) != 1 or others[0] not in set(Operator):
        raise ValueError(f"a condition on a {place} needs one of {', '.join(Operator)}")
    operator = Operator(others[0])
    return Value(place, name, operator, _operand(entry[operator], operator, place))


def _operand(value: object, operator: Operator, place: Place) -> Scalar | None:
    if operator in {Operator.TRUTHY, Operator.PRESENT}:
        if value is not True:
            raise ValueError(f"{operator} is written as true; its opposite is a not around it")
        return None
    if operator is Operator.GREATER:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError("greater needs a number")
        return value
    if isinstance(value, str):
        return reading.line(value, "equals", WORD_LENGTH)
    if place is Place.ENVIRONMENT:
        raise ValueError("equals of a variable needs text")
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError("equals needs text, a number, true or false")
