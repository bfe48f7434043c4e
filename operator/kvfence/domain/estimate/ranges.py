"""A figure that is not known exactly: what it is at least, most likely and at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Range(Generic[Number]):
    """Three readings of one figure.

    Raises:
        ValueError: they are not in order.
    """

    low: Number
    likely: Number
    high: Number

    def __post_init__(self) -> None:
        """Refuse readings that contradict each other."""
        if not self.low <= self.likely <= self.high:
            raise ValueError(f"{self.low}, {self.likely}, {self.high} are no range")

    @classmethod
    def exactly(cls, value: Number) -> Range[Number]:
        """Return the range of a figure that is known."""
        return cls(value, value, value)
