"""TransferReceipt and TagLive: what the engines themselves can show of one canary, and that their defences find faults.

Both ask through the launchers, which only an engine with kvfence-engine has; and of a leg whose door is open already
nothing is asked, since ids like these and faults are for doors on canary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kvfence.domain.receipts import CANARY_RID, DRILL_RID
from kvfence.verify import markers
from kvfence.verify.asking import Limits, Run, legs
from kvfence.verify.judging import (
    Finding,
    contradiction,
    failed,
    is_success,
    not_judged,
    unanswered,
    what_came,
    worst,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.domain.asking import Unanswered
    from kvfence.domain.receipts import Receipt

ANSWER_TOKENS = 2
LARGEST = 2_000
"""Characters of a prompt; some pages are enough."""

_FAULTS: dict[str, dict[str, tuple[str, ...]]] = {
    "prefill": {"pageTagging": ("ForeignPage", "UnwrittenPage")},
    "decode": {
        "pageTagging": ("ForeignPage", "UnwrittenPage"),
        "pageScrubbing": ("OtherBytes",),
        "coverage": ("Coverage",),
    },
}
"""By leg and defence, the kinds of fault that it must find (`kvfence_engine.hooked.drills`)."""


class Witness(Protocol):
    """Asks launchers, as `kvfence.engine.door.DoorClient` does; raises only when it is cancelled."""

    async def receipts(self, host: str, rid: str) -> tuple[Receipt, ...] | Unanswered:
        """Return what the ranks kept of a request."""
        ...


@dataclass(frozen=True)
class Evidence:
    """Whom to ask, and what must be there."""

    witness: Witness
    hosts: Mapping[str, str]
    """By leg, the address of its launcher; of legs whose doors are on canary alone."""
    enforced: frozenset[str]
    """Names of the defences of pages that every rank must have, as `spec.integrity` has them."""

    @property
    def drills(self) -> tuple[tuple[str, str], ...]:
        """Leg and kind of each fault that is asked for."""
        return tuple(
            (leg, kind)
            for leg in self.hosts
            for defence, kinds in _FAULTS[leg].items()
            for kind in kinds
            if defence in self.enforced
        )


def passes_needed(evidence: Evidence | None) -> int:
    """Return how many questions both checks ask at most."""
    if evidence is None or not evidence.hosts or not evidence.enforced:
        return 0
    return 1 + len(evidence.drills) + (1 if evidence.drills else 0)


async def prove_receipt(run: Run, limits: Limits, evidence: Evidence) -> Finding | None:
    """Ask once, and compare what each leg kept of it with what was asked."""
    rid, room = CANARY_RID + _drawn(run), run.draw_room()
    answer = await run.ask_named(_prompt(limits), ANSWER_TOKENS, room, dict.fromkeys(evidence.hosts, rid))
    if (wrong := contradiction(legs(answer)) or unanswered(legs(answer))) is not None:
        return wrong
    tokens = answer.decode.prompt_tokens or 0
    return worst([await _receipt(evidence, leg, rid, room, tokens) for leg in evidence.hosts])


async def prove_drills(run: Run, limits: Limits, evidence: Evidence) -> Finding | None:
    """Ask for each fault, one after the other, and see it found; then ask once without one, and be answered."""
    for leg, kind in evidence.drills:
        if (wrong := await _drill(run, limits, evidence, leg, kind)) is not None:
            return wrong
    answer = await run.ask(_prompt(limits), ANSWER_TOKENS)
    return contradiction(legs(answer)) or unanswered(legs(answer))


async def _receipt(evidence: Evidence, leg: str, rid: str, room: int, tokens: int) -> Finding | None:
    kept = await evidence.witness.receipts(evidence.hosts[leg], rid)
    if not isinstance(kept, tuple):
        return not_judged(f"{leg} gave no receipt ({kept.why})")
    return worst(_compared(leg, one, room, tokens, evidence.enforced) for one in kept)


def _compared(leg: str, kept: Receipt, room: int, tokens: int, enforced: frozenset[str]) -> Finding | None:
    """Return the most telling difference between a receipt and what was asked."""
    wrong = (
        (kept.leg != leg or kept.room != room, "has a receipt of another leg or room"),
        (kept.tokens != tokens, f"worked on {kept.tokens} tokens of a prompt of {tokens}"),
        (bool(kept.found) or not kept.verified, f"found {', '.join(sorted(kept.found)) or 'something'} in it"),
        (
            "pageTagging" in enforced and not kept.pages == kept.pages_verified > 0,
            f"verified {kept.pages_verified} of {kept.pages} pages",
        ),
        (
            "coverage" in enforced and kept.handed_over != (0, tokens, tokens),
            f"does not know of all {tokens} tokens as handed over",
        ),
        ("pageScrubbing" in enforced and not kept.bytes, "looked at no bytes"),
    )
    return next((failed(f"rank {kept.rank} of {leg} {words}") for differs, words in wrong if differs), None)


async def _drill(run: Run, limits: Limits, evidence: Evidence, leg: str, kind: str) -> Finding | None:
    rid = f"{DRILL_RID}{kind}-{_drawn(run)}"
    said = await run.ask_leg(_prompt(limits), ANSWER_TOKENS, leg, {leg: rid})
    if is_success(said):
        return failed(f"{leg} answered {said.status} although a fault ({kind}) was in the pages that it read")
    if said.status is None or not 500 <= said.status < 600 or said.status == 503:
        return not_judged(f"{leg} {what_came(said)} to a request with a fault ({kind})")
    kept = await evidence.witness.receipts(evidence.hosts[leg], rid)
    if not isinstance(kept, tuple):
        return not_judged(f"{leg} gave no receipt of a fault ({kept.why})")
    for one in kept:
        if one.leg != leg or set(one.found) != {kind} or one.verified:
            return failed(f"rank {one.rank} of {leg} did not find the fault that was in its pages ({kind})")
    return None


def _prompt(limits: Limits) -> str:
    """Return a prompt of more than a page, as far as the cap has room for it."""
    return markers.filler(max(1, min(LARGEST, 2 * limits.page_size + 1, limits.longest - ANSWER_TOKENS - 1)))


def _drawn(run: Run) -> str:
    return f"{run.chance.getrandbits(128):032x}"
