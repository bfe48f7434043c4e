"""What an estimated pool lets an engine offer, by its role, with the operator's own formula."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.capacity import INPUT_MARGIN, Measured, PoolId, Wanted, context_that_fits
from kvfence.domain.estimate.fraction import Role
from kvfence.domain.estimate.ranges import Range
from kvfence.domain.estimate.reckoning import Reckoning, reckon

if TYPE_CHECKING:
    from kvfence.domain.estimate.gpus import Gpu
    from kvfence.domain.estimate.layout import Flags, Layout
    from kvfence.domain.estimate.model import Model

RESERVED = 512
"""`--num-reserved-decode-tokens` of SGLang unless it is given."""
HEADROOM = 2
"""`contextLength.headroomPercent` of an InferencePool unless it is given."""
TYPES = {Role.PREFILL: RoleType.PREFILL, Role.DECODE: RoleType.DECODE}


class Verdict(StrEnum):
    """Whether a context length fits into a pool that is only estimated."""

    FITS = "fits"
    DOES_NOT_FIT = "does not fit"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class RoleEstimate:
    """One role's pool, and what could be offered with it."""

    role: Role
    reckoning: Reckoning
    holds: Range[int]
    """The longest context that the pool holds, in tokens. In a pair headroom and decode's reserve are taken off."""
    model_context: int
    """What the model itself has, in tokens."""

    @property
    def context(self) -> Range[int]:
        """What could be offered: what the pool holds, and never more than the model has."""
        held, own = self.holds, self.model_context
        return Range(min(held.low, own), min(held.likely, own), min(held.high, own))

    def verdict(self, context_length: int) -> Verdict:
        """Return whether an engine of this role holds a request of this length."""
        if context_length <= self.holds.low:
            return Verdict.FITS
        return Verdict.DOES_NOT_FIT if context_length > self.holds.high else Verdict.CANNOT_TELL


@dataclass(frozen=True, slots=True)
class Estimate:
    """All of it, for one model on one kind of GPU."""

    model: Model
    layout: Layout
    roles: tuple[RoleEstimate, ...]

    @property
    def alone(self) -> RoleEstimate:
        """The engine that does both."""
        return self.roles[0]

    @property
    def starts(self) -> Verdict:
        """Whether the weights leave room for any pool at all."""
        pool = self.alone.reckoning.pool
        if pool.high == 0:
            return Verdict.DOES_NOT_FIT
        return Verdict.FITS if pool.low > 0 else Verdict.CANNOT_TELL

    def verdict(self, context_length: int) -> Verdict:
        """Return whether a context length fits, whichever role: surely for all, surely for none, or neither."""
        said = {one.verdict(context_length) for one in self.roles}
        return said.pop() if len(said) == 1 else Verdict.CANNOT_TELL


def estimate(model: Model, gpu: Gpu, layout: Layout, flags: Flags) -> Estimate:
    """Estimate the pool and the contexts of an engine alone, of prefill and of decode.

    Args:
        model: what is served.
        gpu: of which kind each GPU is.
        layout: over how many it is spread.
        flags: what else the server is started with.

    Raises:
        CannotEstimateError: something that counts cannot be told.
    """
    roles = []
    for role in Role:
        reckoning = reckon(model, gpu, layout, flags, role)
        pool = reckoning.pool
        holds = Range(_held(pool.low, flags, role), _held(pool.likely, flags, role), _held(pool.high, flags, role))
        roles.append(RoleEstimate(role, reckoning, holds, model.context))
    return Estimate(model, layout, tuple(roles))


def requests_at_once(pool: Range[int], length: int, page_size: int) -> Range[int]:
    """Return how many requests of a length, prompt and answer together, fit into a pool; each takes whole pages."""
    taken = -(-length // page_size) * page_size
    return Range(pool.low // taken, pool.likely // taken, pool.high // taken)


def _held(pool: int, flags: Flags, role: Role) -> int:
    if pool < 1 or role is Role.UNIFIED:
        return pool
    measured = Measured(
        where=PoolId(role.value, "estimate"),
        type=TYPES[role],
        kv_pool_tokens=pool,
        page_size=flags.page_size,
        max_input_tokens=max(0, pool - INPUT_MARGIN),
        reserved_decode_tokens=RESERVED if role is Role.DECODE else 0,
    )
    return context_that_fits(measured, Wanted(requested_tokens=pool, headroom_percent=HEADROOM))
