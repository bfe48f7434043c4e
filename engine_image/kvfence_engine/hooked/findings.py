"""Judges what a request is about to read, counts it, and says which requests must not go on."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kvfence_engine.integrity import classes
from kvfence_engine.integrity.modes import Mode, Modes
from kvfence_engine.integrity.tags import Verdict
from kvfence_engine.integrity.tally import Kind, Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kvfence_engine.alarms import Alarms
    from kvfence_engine.hooked.holders import Holder
    from kvfence_engine.hooked.pool import Pool
    from kvfence_engine.integrity.coverage import Mismatch

logger = logging.getLogger("kvfence")

STATUS = 500
WHY = "the KV cache of this request could not be verified, so it was ended"
"""What a client is told; which of the defences found what is in the engine's counts and log."""


class Findings:
    """Of one rank.

    Args:
        pool: returns the pool once there is one.
        modes: which defences are on.
        alarms: what the launcher must know at once.
        changed: called after counting.
    """

    def __init__(
        self, pool: Callable[[], Pool | None], modes: Modes, alarms: Alarms, changed: Callable[[], None]
    ) -> None:
        self._pool = pool
        self._alarms = alarms
        self._changed = changed
        self._group: Any = None
        self.modes = modes
        self.tally = Tally()

    def join(self, group: Any) -> None:
        """Name the group of ranks that must agree on which requests go on."""
        self._group = group

    def of_pages(self, request: Any, holder: Holder, end: int) -> bool:
        """Verify the tags of a request's pages up to a token; return whether it must end.

        The host waits for the device here: once for each request, not for each step.
        """
        pool = self._pool()
        if pool is None or self.modes.page_tagging is Mode.DISABLED or not end:
            return False
        pages = pool.pages(request.kv.req_pool_idx, 0, end)
        verdicts = pool.tags.verdicts(pages, holder.generation, _expected(pool, holder, len(pages), end))
        both = (verdicts == Verdict.FOREIGN).sum() * (len(pages) + 1) + (verdicts == Verdict.UNWRITTEN).sum()
        foreign, unwritten = divmod(int(both), len(pages) + 1)
        holder.pages, holder.pages_verified = len(pages), len(pages) - foreign - unwritten
        if holder.drill is None:
            self.tally.pages_expected += holder.pages
            self.tally.pages_verified += holder.pages_verified
        mode = self.modes.page_tagging
        ends = self.note(Kind.FOREIGN_PAGE, foreign, mode, holder)
        return self.note(Kind.UNWRITTEN_PAGE, unwritten, mode, holder) or ends

    def of_bytes(self, request: Any, holder: Holder, end: int) -> bool:
        """Look whether bytes arrived in all pages, and the right ones; return whether the request must end."""
        pool = self._pool()
        if pool is None or self.modes.page_scrubbing is Mode.DISABLED or not end:
            return False
        row, mode = request.kv.req_pool_idx, self.modes.page_scrubbing
        holder.bytes = end * pool.bytes.sampled_bytes
        if holder.proof:
            return self.note(Kind.OTHER_BYTES, int(self.proof(row, 0, end) != holder.proof), mode, holder)
        # A prompt of padding alone can be all zeros, so where both sides have a proof, that decides.
        return self.note(Kind.EMPTY_PAGE, int(pool.bytes.empty(pool.pages(row, 0, end)).sum()), mode, holder)

    def of_coverage(self, holder: Holder) -> bool:
        """Return whether a request must end because of what prefill handed over."""
        if self.modes.coverage is Mode.DISABLED or holder.mismatch is None:
            return False
        logger.error("kvfence: coverage of a hand-over: %s", holder.mismatch.value)
        return self.note(Kind.COVERAGE, 1, self.modes.coverage, holder, holder.mismatch)

    def proof(self, row: int, start: int, end: int) -> int:
        """Return the proof of the bytes from `start` up to `end` of a row; 0 when nobody asked for one."""
        pool = self._pool()
        if pool is None or self.modes.page_scrubbing is Mode.DISABLED or start >= end:
            return 0
        return int(pool.bytes.proof(pool.slots(row, start, end)))

    def note(
        self, kind: Kind, count: int, mode: Mode, holder: Holder | None = None, mismatch: Mismatch | None = None
    ) -> bool:
        """Count and tell what was found, if anything; return whether the request must end.

        Args:
            kind: what it is.
            count: how often.
            mode: of the defence that found it. What is observed alone neither ends a request nor says anything about
                the engine.
            holder: of the request; none for what concerns no request.
            mismatch: for `Kind.COVERAGE`.
        """
        if not count:
            return False
        is_enforced = mode is Mode.ENFORCE
        if holder is not None:
            holder.found[kind] += count
            if holder.drill is not None:
                self.tally.drills[kind] += count
                return is_enforced
        self.tally.found[kind] += count
        logger.error("kvfence: %s (%d) in the KV that a request was about to read", kind.value, count)
        if is_enforced:
            was_verified = holder is not None and holder.was_verified
            finding = classes.of(kind, was_verified=was_verified, mismatch=mismatch)
            self._alarms.sound(finding, kind, holder.peer if holder else "")
        return is_enforced

    def agree(self, requests: list[Any], ends: list[bool]) -> Iterator[Any]:
        """Return the requests that end on any rank: ranks that compute together must drop the same ones."""
        if not requests:
            return
        for request, bad in zip(requests, self.any_rank(ends), strict=True):
            if bad:
                self.tally.requests_failed += 1
                yield request
        self._changed()

    def any_rank(self, flags: list[bool]) -> list[bool]:
        """Return for each flag whether it is up on any of the ranks that compute together; all must ask at once."""
        utils = import_module("sglang.srt.disaggregation.utils")
        most = import_module("torch").distributed.ReduceOp.MAX
        return [bool(flag) for flag in utils.all_reduce_flags([int(flag) for flag in flags], self._group, most)]

    def shared_pages(self) -> bool:
        """Ask whether pages were given to two since it was asked last, on any rank; they are foreign to both."""
        pool = self._pool()
        if pool is None or self.modes.page_tagging is Mode.DISABLED:
            return False
        conflicts = pool.tags.conflicts()
        self.note(Kind.SHARED_PAGE, conflicts, self.modes.page_tagging)
        return self.any_rank([bool(conflicts)])[0]


def aborted() -> Any:
    """Return the end of a request that could not be verified, as SGLang has it."""
    return import_module("sglang.srt.managers.schedule_batch").FINISH_ABORT(WHY, STATUS, "InternalServerError")


def _expected(pool: Pool, holder: Holder, pages: int, end: int) -> Any:
    """Return the content tags of the pages up to a token; the last page is not full, and shared with nobody."""
    if holder.contents is None:
        return None
    expected, full = pool.zeros(pages), holder.contents[: end // pool.page_size]
    expected[: len(full)] = pool.array(full)
    return expected
