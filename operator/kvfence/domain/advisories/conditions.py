"""Under which condition an advisory applies: a small language over what a server tells, total, with three answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.api.v1alpha1.pool import RoleType

BACKEND_SETTING = "disaggregation_transfer_backend"
FALSE_WORDS = frozenset({"", "0", "false", "no", "off", "none", "null"})
"""What variables and printed settings say for "not set"."""


class Applies(StrEnum):
    """Whether something holds, as far as it was told."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Told:
    """What a server told that conditions look at."""

    role: RoleType | None
    settings: Mapping[str, Any]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a condition holds, and why. Never quotes a told value: it could be a secret."""

    applies: Applies
    why: str


class Place(StrEnum):
    """Where a value is told."""

    SETTING = "setting"
    ENVIRONMENT = "environment"


class Operator(StrEnum):
    """How a value is looked at."""

    EQUALS = "equals"
    """Like the operand, whatever the case of letters."""
    TRUTHY = "truthy"
    """Set to something that is not false, zero or empty."""
    PRESENT = "present"
    """Told, and not null."""
    GREATER = "greater"
    """A number above the operand."""


Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Value:
    """A setting or variable with a value of this kind."""

    place: Place
    name: str
    operator: Operator
    operand: Scalar | None = None
    """Of equals and greater."""

    def answer(self, told: Told) -> Answer:
        """Judge it."""
        values: Mapping[str, Any] = told.settings if self.place is Place.SETTING else told.environment
        if self.name not in values:
            return Answer(Applies.UNKNOWN, f"{self._what()} is not told")
        applies = _compared(values[self.name], self.operator, self.operand)
        words = {Applies.YES: "is", Applies.NO: "is not", Applies.UNKNOWN: "cannot be told to be"}[applies]
        return Answer(applies, f"{self._what()} {words} {self._wanted()}")

    def _what(self) -> str:
        return self.name if self.place is Place.SETTING else f"the variable {self.name}"

    def _wanted(self) -> str:
        return {
            Operator.EQUALS: f"{self.operand}",
            Operator.TRUTHY: "set",
            Operator.PRESENT: "given",
            Operator.GREATER: f"greater than {self.operand}",
        }[self.operator]

    def __str__(self) -> str:
        """Say it as people do."""
        return f"{self._what()} is {self._wanted()}"


@dataclass(frozen=True, slots=True)
class InRole:
    """The engine has one of these roles."""

    roles: tuple[RoleType, ...]

    def answer(self, told: Told) -> Answer:
        """Judge it."""
        if told.role is None:
            return Answer(Applies.UNKNOWN, "the role is not told")
        if told.role in self.roles:
            return Answer(Applies.YES, f"the role is {told.role}")
        return Answer(Applies.NO, f"the role is {told.role}, not {_either(self.roles)}")

    def __str__(self) -> str:
        """Say it as people do."""
        return f"the role is {_either(self.roles)}"


@dataclass(frozen=True, slots=True)
class WithBackend:
    """KV travels by one of these backends, as `disaggregation_transfer_backend` says."""

    backends: tuple[str, ...]

    def answer(self, told: Told) -> Answer:
        """Judge it."""
        said = told.settings.get(BACKEND_SETTING)
        if not isinstance(said, str):
            return Answer(Applies.UNKNOWN, "the transfer backend is not told")
        if said.casefold() in {backend.casefold() for backend in self.backends}:
            return Answer(Applies.YES, f"the transfer backend is {_either(self.backends)}")
        return Answer(Applies.NO, f"the transfer backend is not {_either(self.backends)}")

    def __str__(self) -> str:
        """Say it as people do."""
        return f"the transfer backend is {_either(self.backends)}"


@dataclass(frozen=True, slots=True)
class Asked:
    """What no server tells, and a person knows: always unknown, so that it is neither claimed nor forgotten."""

    whether: str
    """`the model is an encoder-decoder`."""

    def answer(self, told: Told) -> Answer:  # noqa: ARG002 - the other conditions look at it
        """Say that it is not known."""
        return Answer(Applies.UNKNOWN, f"no server tells whether {self.whether}")

    def __str__(self) -> str:
        """Say it as people do."""
        return self.whether


@dataclass(frozen=True, slots=True)
class AllOf:
    """Each of them holds. One that does not decides, whatever is unknown."""

    parts: tuple[Condition, ...]

    def answer(self, told: Told) -> Answer:
        """Judge it."""
        return _decided([part.answer(told) for part in self.parts], Applies.NO)

    def __str__(self) -> str:
        """Say it as people do."""
        return " and ".join(_nested(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of them holds. One that does decides, whatever is unknown."""

    parts: tuple[Condition, ...]

    def answer(self, told: Told) -> Answer:
        """Judge it."""
        return _decided([part.answer(told) for part in self.parts], Applies.YES)

    def __str__(self) -> str:
        """Say it as people do."""
        return " or ".join(_nested(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Not:
    """It does not hold."""

    part: Condition

    def answer(self, told: Told) -> Answer:
        """Judge it."""
        answer = self.part.answer(told)
        return Answer(_OPPOSITE[answer.applies], answer.why)

    def __str__(self) -> str:
        """Say it as people do."""
        return f"not ({self.part})"


Condition = Value | InRole | WithBackend | Asked | AllOf | AnyOf | Not

_OPPOSITE = {Applies.YES: Applies.NO, Applies.NO: Applies.YES, Applies.UNKNOWN: Applies.UNKNOWN}


def _decided(answers: list[Answer], decisive: Applies) -> Answer:
    """Of several answers: the decisive one if there is one, else unknown if one is, else the other."""
    for applies in (decisive, Applies.UNKNOWN, _OPPOSITE[decisive]):
        why = [answer.why for answer in answers if answer.applies is applies]
        if why:
            return Answer(applies, why[0] if applies is decisive else " and ".join(why))
    raise ValueError("a condition of no parts")


def _compared(said: object, operator: Operator, operand: Scalar | None) -> Applies:
    match operator:
        case Operator.PRESENT:
            return _word(said is not None)
        case Operator.TRUTHY:
            return _truth(said)
        case Operator.EQUALS:
            return _word(_plain(said) == _plain(operand))
        case Operator.GREATER:
            number, limit = _number(said), _number(operand)
            return Applies.UNKNOWN if number is None or limit is None else _word(number > limit)


def _truth(said: object) -> Applies:
    if said is None or isinstance(said, bool | int | float | list | tuple | dict):
        return _word(bool(said))
    return _word(said.strip().casefold() not in FALSE_WORDS) if isinstance(said, str) else Applies.UNKNOWN


def _plain(value: object) -> tuple[str, object]:
    """Return what may be compared: true is not 1, and 4 is 4.0."""
    if isinstance(value, str):
        return ("text", value.strip().casefold())
    if isinstance(value, bool):
        return ("truth", value)
    return ("number", value) if isinstance(value, int | float) else ("neither", None)


def _number(value: object) -> int | float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return None if isinstance(value, float) and math.isnan(value) else value


def _word(holds: bool) -> Applies:
    return Applies.YES if holds else Applies.NO


def _either(words: tuple[str, ...]) -> str:
    return " or ".join(words)


def _nested(part: Condition) -> str:
    return f"({part})" if isinstance(part, AllOf | AnyOf) else str(part)
