"""How hard each check looks: how many of its questions would show a leak that struck them, and how likely.

A leak shows where the check then does not pass: it fails, or it cannot judge an answer that is not what was asked for.
Probes are counted from what a check that passed has asked, and rather too few than too many. docs/canary.md has a
picture of it beside what is measured on stand-ins whose flaw strikes at random.

A check that is not here looks at what chance has no part in: SaltIsolation at a rule of the cache, for which two
questions have to be struck, and RouterPairing at the router's choices, which it counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.domain.verdicts import Check
from kvfence.verify import isolation
from kvfence.verify.canary import (
    abort_reuse,
    edges,
    fake_transfer,
    health_check_rid,
    marker_isolation,
    measuring,
)
from kvfence.verify.canary.detection import Probing

if TYPE_CHECKING:
    from kvfence.verify.canary.session import Target

COUNTED = 0.75
"""Of PromptTokens: how many of its lengths are no whole number of pages; only these show a count by pages."""

NEIGHBOURS = 0.75
"""Of MarkerIsolation: how many of four requests at the same time still have another beside them as they end. Behind a
router, which spreads them over engines, fewer have: `NEIGHBOURS_BEHIND_A_ROUTER`."""

NEIGHBOURS_BEHIND_A_ROUTER = 0.5

REUSED = 0.5
"""Of AbortReuse: how likely those who ask next get what was still in transfer for one that was left."""

MEASURED = 6
"""Texts by which PromptTokens learns how a target counts that takes no ids of tokens."""

COMPARED = 4
"""Questions of PairIdentity for each prompt: how long it is, the reference twice, and the target."""

GOOD = 4
"""Streams of StreamErrors, and the same without a stream, that are not to be refused; at most."""


def probing_of(check: Check, target: Target, requests: int) -> Probing | None:
    """Return how hard a check has looked that passed; none where chance has no part in it, or nothing was probed.

    Args:
        check: which one.
        target: what it examined.
        requests: that it asked.
    """
    if check is Check.MARKER_ISOLATION:
        return _neighbours(target, requests)
    if check is Check.ABORT_REUSE:
        return _left(target)
    rounds = _one_by_one(check, target, requests)
    sensitivity = COUNTED if check is Check.PROMPT_TOKENS else 1.0
    return Probing(rounds, 1, sensitivity) if rounds > 0 else None


def _neighbours(target: Target, requests: int) -> Probing | None:
    rounds = marker_isolation.ROUNDS
    at_once = requests // rounds - isolation.ASKING
    sensitivity = NEIGHBOURS_BEHIND_A_ROUTER if target.is_router else NEIGHBOURS
    return Probing(rounds, at_once, sensitivity) if at_once > 0 else None


def _left(target: Target) -> Probing:
    moments = abort_reuse.MOMENTS.values() if target.pair is not None else (abort_reuse.MOMENTS["all"],)
    return Probing(sum(map(len, moments)), abort_reuse.AT_LEAST, REUSED)


def _one_by_one(check: Check, target: Target, requests: int) -> int:
    """Return how many questions are probes, of a check that asks one after the other; 0 or less for none."""
    probes = {
        Check.OVERLONG_PROMPT: _overlong(target),
        Check.PROMPT_TOKENS: requests - (0 if target.takes_token_ids else MEASURED),
        Check.STREAM_ERRORS: requests - GOOD,
        Check.FAKE_TRANSFER: fake_transfer.TRIES,
        Check.HEALTH_CHECK_RID: health_check_rid.TRIES,
        Check.PAIR_IDENTITY: (requests - len(measuring.SHORT)) // COMPARED,
    }
    return probes.get(check, 0)


def _overlong(target: Target) -> int:
    """Return how many prompts every target was asked that no engine can hold and no tokenizer refuses.

    Texts that ask for a marker come on top where the target's tokenizer can be measured.
    """
    refused_from, contexts = edges.refused_from(target), edges.contexts(target)
    if refused_from is None:
        return 0
    most = max(contexts, default=refused_from)
    return sum(refused_from <= length < most for length in edges.at_the_edges(target))
