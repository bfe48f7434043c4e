"""For each check, what is broken on purpose that it must see before it counts."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from kvfence.domain.verdicts import Check, Outcome
from kvfence.verify.canary.stand_in import Flaw, Shape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.verify.canary.session import Target

ANY = (Shape.PAIR, Shape.SERVER, Shape.ROUTER)


@dataclass(frozen=True, slots=True)
class Control:
    """Stand-ins on which a check must not pass, and the shapes in which it can be tried."""

    flaws: tuple[Flaw, ...]
    """One stand-in for each, broken in this one way."""
    shapes: tuple[Shape, ...] = ANY
    """The target's own if it is among them, else the first."""
    seen_as: Outcome = Outcome.FAILED
    """What the check has to say of each of them."""

    def shape(self, target: Target) -> Shape:
        """Return the shape of the stand-in that is most like the target."""
        own = shape_of(target)
        return own if own in self.shapes else self.shapes[0]


def shape_of(target: Target) -> Shape:
    """Return what a target is."""
    if target.pair is not None:
        return Shape.PAIR
    return Shape.ROUTER if target.is_router else Shape.SERVER


CONTROLS: Mapping[Check, Control] = MappingProxyType(
    {
        Check.MARKER_ISOLATION: Control((Flaw.CROSSED_ANSWERS,)),
        Check.OVERLONG_PROMPT: Control((Flaw.STALE_PAGES, Flaw.CUT_PROMPT, Flaw.HANGS_ON_OVERLONG)),
        Check.PROMPT_TOKENS: Control((Flaw.WRONG_COUNT,)),
        Check.STREAM_ERRORS: Control((Flaw.STREAM_ERROR_AS_SUCCESS,)),
        Check.FAKE_TRANSFER: Control((Flaw.FAKE_TRANSFER_ACCEPTED,), (Shape.PAIR, Shape.ROUTER)),
        Check.HEALTH_CHECK_RID: Control((Flaw.HEALTH_RID_ACCEPTED,), (Shape.PAIR, Shape.ROUTER)),
        Check.ABORT_REUSE: Control((Flaw.ABORT_LEAKS,)),
        Check.SALT_ISOLATION: Control((Flaw.SALT_IGNORED,)),
        Check.PAIR_IDENTITY: Control((Flaw.PAIR_DIFFERS,), (Shape.PAIR, Shape.ROUTER)),
        Check.ROUTER_PAIRING: Control((Flaw.LOCKSTEP_PAIRING,), (Shape.ROUTER,), Outcome.NOT_JUDGED),
    }
)
