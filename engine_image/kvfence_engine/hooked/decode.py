"""Decode: pages are tagged and zeroed before prefill is told of them, and verified before the first decode step."""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kvfence_engine.hooked import drills
from kvfence_engine.hooked.findings import STATUS, WHY, aborted
from kvfence_engine.hooked.framing import namespace_of
from kvfence_engine.hooked.holders import Holder, hang_on, holder_of
from kvfence_engine.hooks import Hook, Kind
from kvfence_engine.integrity import coverage, handover
from kvfence_engine.integrity.content import Contents
from kvfence_engine.integrity.modes import Mode
from kvfence_engine.integrity.tally import Kind as Found

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvfence_engine.hooked.canaries import Canaries
    from kvfence_engine.hooked.findings import Findings
    from kvfence_engine.hooked.pool import Pool

_DECODE = "sglang.srt.disaggregation.decode"
_AHEAD = 1.0
"""Seconds before its deadline in which a release counts as late: SGLang looks at the clock after this does, and what it
does not release in this pass is looked at again.
"""


class DecodeHooks:
    """Of one rank of a decode engine.

    Args:
        pool: returns the pool once there is one.
        findings: judges and counts.
        canaries: knows the requests that ask for faults, and keeps their receipts.
        key: of the digest of prompts; the same in all engines of the pool.
    """

    def __init__(self, pool: Callable[[], Pool | None], findings: Findings, canaries: Canaries, key: bytes) -> None:
        self._pool = pool
        self._findings = findings
        self._canaries = canaries
        self._digests = Contents(key)
        self.hooks = (
            Hook(f"{_DECODE}.DecodePreallocQueue._pre_alloc", Kind.AFTER, self._allocated),
            Hook(f"{_DECODE}.DecodeTransferQueue._commit_transfer_to_req", Kind.AROUND, self._arrived),
            Hook(f"{_DECODE}.DecodeTransferQueue.resolve_deferred_releases", Kind.BEFORE, self._retire),
            Hook("sglang.srt.mem_cache.common.restore_kv_cache", Kind.AFTER, self._restored),
            Hook(f"{_DECODE}.SchedulerDisaggregationDecodeMixin._verify_kv_checksums", Kind.BEFORE, self._verify),
            Hook("sglang.srt.mem_cache.allocation.alloc_for_decode", Kind.AFTER, self._decoded),
        )

    def _allocated(self, _slots: Any, _queue: Any, request: Any, *_: Any, **__: Any) -> None:
        """Tag and zero the pages of a request; their addresses are published after this."""
        pool = self._pool()
        if pool is None:
            return
        digest = self._digests.digest(namespace_of(request), request.origin_input_ids)
        peer = f"{request.bootstrap_host}:{request.bootstrap_port}"
        drill = self._canaries.drill(request)
        holder = hang_on(request, Holder(digest=digest, is_probe=_is_probe(request), peer=peer, drill=drill))
        row = request.kv.req_pool_idx
        pages = pool.pages(row, 0, int(request.kv.kv_committed_len))
        pool.tags.take(pages, holder.generation, written=False, yields=True)
        pool.generations[row : row + 1] = holder.generation
        held = pool.tags.held(pages, holder.generation)
        if not held.all():  # given to another too, who may be reading them: nothing of this request may go there
            pool.shun(row, pages, ~held)
            pages = pages[held]
        if holder.is_probe or self._findings.modes.page_scrubbing is not Mode.DISABLED:
            self._findings.tally.bytes_zeroed += pool.zero(pages)

    def _arrived(self, original: Callable[..., Any], queue: Any, waiting: Any) -> Any:
        """Compare what prefill says that it handed over, and tag the pages that it covers."""
        pool, request = self._pool(), waiting.req
        holder = holder_of(request)
        if pool is not None and holder is not None:
            index, buffers = waiting.metadata_buffer_index, queue.metadata_buffers
            handed = handover.read(
                buffers.cached_tokens[index, handover.INT32_SLOTS].tolist(),
                buffers.bootstrap_room[index, handover.UINT64_SLOTS].tolist(),
                request.bootstrap_room or 0,
            )
            tokens = len(request.origin_input_ids)
            holder.came = True
            holder.handed = handed
            holder.mismatch = coverage.judge(handed, tokens=tokens, start=0, digest=holder.digest)
            holder.proof = handed.proof if handed else 0
            end = min(coverage.covered(handed), int(request.kv.kv_committed_len))
            if handed and handed.start < end:
                pages = pool.pages(request.kv.req_pool_idx, handed.start, end)
                pool.tags.arrived(pages, holder.generation)
        return original(queue, waiting)

    def _retire(self, queue: Any) -> None:
        """Mark the requests whose pages SGLang is about to give up although a transfer may still write into them."""
        waiting = queue._deferred_releases
        if self._pool() is None or not waiting or self._findings.modes.page_scrubbing is Mode.DISABLED:
            return
        now = time.monotonic()
        late = [now + _AHEAD >= deadline and not _is_drained(one, acks) for one, _, deadline, _, acks in waiting]
        for (one, *_), is_late in zip(waiting, self._findings.any_rank(late), strict=True):
            holder = holder_of(one.req)
            if holder is not None:
                holder.retires = is_late

    def _restored(self, _result: Any, request: Any, *_: Any, **__: Any) -> None:
        """After a retraction a request's own KV comes back into new pages."""
        pool, holder = self._pool(), holder_of(request)
        if pool is not None and holder is not None:
            holder.was_verified = False  # of the new pages nothing was read yet
            pages = pool.pages(request.kv.req_pool_idx, 0, int(request.kv.kv_committed_len))
            pool.tags.arrived(pages, holder.generation)

    def _verify(self, scheduler: Any, batch: Any) -> None:
        """Look at all that these requests are about to read, and end those that must not; nobody got a token yet."""
        pool = self._pool()
        if pool is None:
            return
        requests = list(batch.reqs)
        shared = self._findings.shared_pages()
        ends = [self._ends(pool, request) for request in requests]
        dropped = {id(request) for request in self._findings.agree(requests, ends)}
        for request in requests:
            if id(request) in dropped:
                _drop(scheduler, pool, request)
        if dropped:
            batch.filter_batch(keep_indices=[i for i, request in enumerate(requests) if id(request) not in dropped])
        if dropped or shared:
            self._look_again(scheduler)

    def _look_again(self, scheduler: Any) -> None:
        """Verify the requests that decode already: whatever put another's page into one row may have done so in theirs.

        They were right when they began, so a page that is not theirs came later, and they may have read it.
        """
        running = [one for one in scheduler.running_batch.reqs if one.kv.holds_kv and not one.finished()]
        holders = [holder_of(request) or Holder() for request in running]
        ends = [int(request.kv.kv_committed_len) for request in running]
        found = [self._findings.of_pages(*one) for one in zip(running, holders, ends, strict=True)]
        for request in self._findings.agree(running, found):
            request.to_finish = aborted()
            holder = holder_of(request)
            if holder is not None:
                holder.was_verified = False  # so that it gives back what it holds, and not what its row names

    def _ends(self, pool: Pool, request: Any) -> bool:
        holder, findings = holder_of(request), self._findings
        if holder is None or holder.is_probe:
            findings.tally.requests_unverified += 1
            mode = Mode.ENFORCE if findings.modes.any_enforced else Mode.OBSERVE
            return holder is None and findings.note(Found.UNVERIFIED, 1, mode)
        end = int(request.kv.kv_committed_len)
        with drills.fault(pool, holder, request.kv.req_pool_idx, end):
            bad = findings.of_pages(request, holder, end)
            if holder.came:  # once: decode writes into the last page from now on
                holder.came = False
                bad |= findings.of_coverage(holder)
                bad |= findings.of_bytes(request, holder, end)
        holder.was_verified = not holder.was_found
        findings.tally.requests_verified += holder.was_verified
        self._canaries.keep(request, holder)
        return bad

    def _decoded(self, slots: Any, batch: Any, token_per_req: int) -> None:
        """Tag the pages that a decode step begins; the host knows without the device in which rows it begins one."""
        pool = self._pool()
        if pool is None or token_per_req != 1:
            return
        if pool.page_size == 1:
            rows, pages = batch.req_pool_indices, slots.long()
        else:
            begins = (batch.seq_lens_cpu % pool.page_size == 0).nonzero().flatten()
            if not len(begins):
                return
            at = begins.to(slots.device, non_blocking=True)
            rows, pages = batch.req_pool_indices[at], slots[at].long() // pool.page_size
        pool.tags.take(pages, pool.generations[rows], written=True)


def _drop(scheduler: Any, pool: Pool, request: Any) -> None:
    """End a request that SGLang has ready to decode, as its own checksum does; its pages keep nothing of it."""
    utils = import_module("sglang.srt.disaggregation.utils")
    utils.prepare_abort(request, WHY, status_code=STATUS)
    scheduler.output_streamer.stream_output([request], request.return_logprob)
    holder = holder_of(request)
    if holder is not None:
        pages = pool.pages(request.kv.req_pool_idx, 0, int(request.kv.kv_committed_len))
        pool.zero(pages[pool.tags.held(pages, holder.generation)])  # what is another's stays as it is
    common = import_module("sglang.srt.mem_cache.common")
    common.release_kv_cache(request, scheduler.tree_cache, checkpoint=False)
    if scheduler.metrics_reporter.enable_metrics:
        scheduler.metrics_collector.increment_transfer_failed_reqs()


def _is_drained(waiting: Any, acks: int) -> bool:
    """Whether prefill has said that nothing of a transfer comes any more, as SGLang itself asks it."""
    receiver = waiting.kv_receiver
    return bool(receiver.kv_mgr.is_abort_release_safe(waiting.req.bootstrap_room, acks))


def _is_probe(request: Any) -> bool:
    """Whether SGLang made the request up to answer `/health`; clients cannot, since the door refuses both signs."""
    utils = import_module("sglang.srt.disaggregation.utils")
    checksum = import_module("sglang.srt.disaggregation.checksum")
    return bool(utils._is_fake_transfer(request) and checksum.is_health_check_req(request))
