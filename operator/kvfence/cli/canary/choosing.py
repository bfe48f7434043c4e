"""Which checks are run, and what a run may cost where the user did not say. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.cli.canary.report import LeftOut
from kvfence.domain.verdicts import Check

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvfence.verify.canary.session import Target

REQUESTS = 500
"""Of a whole run, discovery included."""

PER_SECOND = 20.0
"""Requests a second at most. A busy service has more; an answer takes longer than a twentieth of a second, so that
requests which are meant to run at the same time do."""

CONTEXTS = 40
"""How many times the advertised context a run may cost in tokens. OverlongPrompt asks for some 20 lengths at the edges
of pools and context; what is refused costs no more than its JSON."""

LEAST_TOKENS = 400_000
"""Of a run, also where the context is not told."""

NOT_NAMED = "not in --checks"

SECONDS = 60.0
"""Until an answer must be complete, for a short prompt."""

TOKENS_PER_SECOND = 2_000
"""How slowly a long prompt may be computed."""


def chosen(
    asked: Sequence[Check], suite: Sequence[Check], target: Target | None
) -> tuple[tuple[Check, ...], tuple[LeftOut, ...]]:
    """Return the checks to run, and those that are left out with the reason.

    Args:
        asked: by name; empty for all of which the target has a use. What is asked for by name is run in any case: it
            then says itself why it cannot be judged.
        suite: all that there are, in their order.
        target: none when it is not known.
    """
    whys = {check: _why_not(check, asked, target) for check in suite}
    left_out = tuple(LeftOut(check, why) for check, why in whys.items() if why)
    return tuple(check for check, why in whys.items() if not why), left_out


def tokens_for(target: Target) -> int:
    """Return how many tokens a run may cost, by the longest context that is told."""
    return max(LEAST_TOKENS, CONTEXTS * _longest(target))


def patience(target: Target) -> float:
    """Return the seconds until an answer must be complete, by the longest prompt that there can be."""
    return SECONDS + _longest(target) / TOKENS_PER_SECOND


def _longest(target: Target) -> int:
    return max((known.context_length or 0 for known in (*target.legs, *target.engines)), default=0)


def _why_not(check: Check, asked: Sequence[Check], target: Target | None) -> str:
    if asked:
        return "" if check in asked else NOT_NAMED
    if target is None:
        return ""
    if check is Check.ROUTER_PAIRING and not target.is_router:
        return "not a router"
    if check is Check.PAIR_IDENTITY and target.reference is None:
        return "no --reference to compare with"
    if check is Check.PAIR_IDENTITY and target.pair is None and not target.is_router:
        return "not a pair"
    return ""
