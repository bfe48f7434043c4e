"""What the operator keeps in memory of a pool between two looks at it. All of it can be found out again; that a boot
failed is told to its door, which stays shut.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kvfence.domain.advisory_gate import declared, judged
from kvfence.domain.observed import Known, Nonces, Proof
from kvfence.domain.verdicts import Outcome, Verdict

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Collection, Mapping

    from kvfence.api.v1alpha1.pool import PoolSpec
    from kvfence.domain.advisories import Advisory, Subject
    from kvfence.domain.advisory_gate import Judged, Watchlist
    from kvfence.domain.engines import Facts

FIRST_RETRY_SECONDS = 2.0
LONGEST_RETRY_SECONDS = 60.0
BOOT_PAUSE_SECONDS = 10.0
"""An engine takes longer to start."""


@dataclass(frozen=True)
class Fronts:
    """What a verdict on fronts is about. Another router pod is another front."""

    revision: str
    cap: int
    """Tokens of context that they tell."""
    pods: frozenset[str]
    """UIDs of the router's pods."""


@dataclass
class PoolMemory:
    """Of one pool, by its UID."""

    uid: str
    facts: dict[Nonces, Facts] = field(default_factory=dict)
    judged: dict[Nonces, tuple[tuple[Advisory, ...], Judged]] = field(default_factory=dict)
    """By which advisories a boot was judged, and what they say."""
    declared: tuple[tuple[Advisory, ...], tuple[Subject, ...], Judged] | None = None
    """The same of what the spec declares."""
    proofs: dict[Nonces, Proof] = field(default_factory=dict)
    fronts: dict[Fronts, tuple[Verdict, ...]] = field(default_factory=dict)
    refusals: dict[Nonces, str] = field(default_factory=dict)
    pods: dict[Nonces, str] = field(default_factory=dict)
    """UIDs of the pods that the boots above are of."""
    job: asyncio.Task[None] | None = None
    retries: int = 0
    retry_at: float | None = None
    """By the monotonic clock."""
    last_step: tuple[object, object, float] | None = None
    """What the last step was about, of which boots, and when it was begun."""

    def known(self, fronts: Fronts | None) -> Known:
        """Return what the gates may know, of these fronts among other things."""
        verdicts = self.fronts.get(fronts, ()) if fronts is not None else ()
        return Known(dict(self.proofs), verdicts, dict(self.refusals))

    def judged_boot(self, watchlist: Watchlist, nonces: Nonces, running: Subject) -> Judged:
        """Judge a boot by the advisories; again only when others count."""
        before = self.judged.get(nonces)
        if before is None or before[0] is not watchlist.advisories:
            before = self.judged[nonces] = (watchlist.advisories, judged(watchlist, (running,)))
        return before[1]

    def judged_declared(self, watchlist: Watchlist, spec: PoolSpec) -> Judged:
        """Judge what a spec declares by the advisories; again only when others count, or it declares something else."""
        subjects = declared(spec)
        if self.declared is None or self.declared[0] is not watchlist.advisories or self.declared[1] != subjects:
            self.declared = (watchlist.advisories, subjects, judged(watchlist, subjects))
        return self.declared[2]

    def add(self, nonces: Nonces, cap: int, verdicts: tuple[Verdict, ...]) -> None:
        """Add what checks under a cap said about a boot; what was said under another is no more, unless it failed."""
        before = self.proofs.get(nonces)
        if before is not None and (before.cap == cap or _has_failed(before.verdicts)):
            verdicts = before.verdicts + verdicts
        self.proofs[nonces] = Proof(cap, verdicts)

    def keep(self, boots: Mapping[Nonces, str], silent: Collection[str]) -> None:
        """Forget what was known of boots that are no more.

        Args:
            boots: those that answer, with the UIDs of their pods.
            silent: UIDs of pods that do not say which boot they are: a boot that failed is not tried again because it
                did not answer once.
        """
        self.pods = {nonces: pod for nonces, pod in self.pods.items() if pod in silent} | dict(boots)
        for known in (self.facts, self.judged, self.proofs, self.refusals):
            for nonces in known.keys() - self.pods.keys():
                del known[nonces]

    def is_busy(self) -> bool:
        """Whether something that takes time is being done about the pool."""
        return self.job is not None and not self.job.done()

    def begin(self, about: object, boots: object) -> bool:
        """Note which step begins now; false when it has to wait until something is due.

        The same step again had no effect. For other boots of the same pods there is a pause, or an engine that names
        another boot each time it is asked would keep the operator busy.
        """
        now = time.monotonic()
        if self.last_step is not None:
            last_about, last_boots, began = self.last_step
            if about == last_about and (boots == last_boots or now < began + BOOT_PAUSE_SECONDS):
                return False
        self.last_step = (about, boots, now)
        return True

    def try_again_when_due(self) -> None:
        """Drop the verdicts that say nothing yet, and refusals, once it is time: they are then asked for again."""
        if self.retry_at is None or time.monotonic() < self.retry_at:
            return
        self.retry_at = self.last_step = None
        self.refusals.clear()
        for nonces, proof in list(self.proofs.items()):
            if is_open_question(proof.verdicts):
                del self.proofs[nonces]
        for which, verdicts in list(self.fronts.items()):
            if is_open_question(verdicts):
                del self.fronts[which]

    def retry_after(self, *, unsettled: bool) -> float | None:
        """Return in how many seconds to look again; longer each time, and none when all is settled."""
        if not unsettled:
            if not self.is_busy():
                self.retries = 0
            self.retry_at = None
            return None
        now = time.monotonic()
        if self.retry_at is None:
            self.retries += 1
            self.retry_at = now + min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** min(self.retries - 1, 10))
        return max(0.0, self.retry_at - now)


def is_open_question(verdicts: tuple[Verdict, ...]) -> bool:
    """Whether it is to be asked again: something could not be judged, and nothing failed."""
    return any(one.outcome is Outcome.NOT_JUDGED for one in verdicts) and not _has_failed(verdicts)


def _has_failed(verdicts: tuple[Verdict, ...]) -> bool:
    return any(one.outcome is Outcome.FAILED for one in verdicts)
