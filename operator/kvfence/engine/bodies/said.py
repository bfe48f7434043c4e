"""What one answer of a server says of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kvfence.domain.diagnosis.seen import NOTHING, Product
from kvfence.engine import fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.api.v1alpha1.pool import RoleType

RANKS_LIMIT = 4096
"""More ranks of data parallelism than any server has; a number above it is not believed."""


@dataclass(frozen=True, slots=True)
class Said:
    """What one answer says. None, and an empty mapping, stand for what it does not say. Counts are tokens."""

    where: str
    """The path that was asked."""
    product: Product | None = None
    version: str | None = None
    role: RoleType | None = None
    pools: Mapping[int, int] = field(default_factory=dict)
    """By rank of data parallelism."""
    ranks_named: bool = True
    """False where several ranks are listed and it is not said which is which."""
    dp_size: int | None = None
    context: int | None = None
    input_limit: int | None = None
    """`max_req_input_len` of rank 0."""
    settings: Mapping[str, Any] = field(default_factory=lambda: NOTHING, repr=False)
    keys_shown: tuple[str, ...] = ()
    sliding: bool = False
    """Whether the pool has a part for sliding windows, which may limit prompts on its own."""
    notes: tuple[str, ...] = ()


def tokens(value: object) -> int | None:
    """Return a number of tokens from 1; none for anything else."""
    return count(value) or None


def count(value: object) -> int | None:
    """Return a whole number from 0, also where JSON has it with a point; none for anything else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return fields.number(value)


def unreadable_numbers(body: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, ...]:
    """Return a note for each of these that is there, is not null, and is no number of tokens."""
    return tuple(
        f"{name} is not a number of tokens, and is not counted."
        for name in names
        if body.get(name) is not None and tokens(body[name]) is None
    )
