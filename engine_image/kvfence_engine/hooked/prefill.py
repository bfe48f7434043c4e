"""Prefill: pages are tagged when a prompt gets them, and verified before it reads them and before they are sent."""

from __future__ import annotations

import secrets
from array import array
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kvfence_engine.hooked import drills
from kvfence_engine.hooked.findings import aborted
from kvfence_engine.hooked.framing import namespace_of
from kvfence_engine.hooked.holders import Holder, hang_on, holder_of
from kvfence_engine.hooks import Hook, Kind
from kvfence_engine.integrity import handover
from kvfence_engine.integrity.content import Contents
from kvfence_engine.integrity.handover import HandOver

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvfence_engine.hooked.canaries import Canaries
    from kvfence_engine.hooked.findings import Findings
    from kvfence_engine.hooked.pool import Pool

_RESULTS = "sglang.srt.disaggregation.prefill.SchedulerDisaggregationPrefillMixin.process_batch_result_disagg_prefill"


class PrefillHooks:
    """Of one rank of a prefill engine.

    Args:
        pool: returns the pool once there is one.
        findings: judges pages and counts.
        canaries: knows the requests that ask for faults, and keeps their receipts.
        key: of the digest of prompts; the same in all engines of the pool.
    """

    def __init__(self, pool: Callable[[], Pool | None], findings: Findings, canaries: Canaries, key: bytes) -> None:
        self._pool = pool
        self._findings = findings
        self._canaries = canaries
        self._digests = Contents(key)
        self._contents = Contents(secrets.token_bytes(32))  # compared within this process alone
        self.hooks = (
            Hook("sglang.srt.mem_cache.allocation.alloc_for_extend", Kind.AFTER, self._allocated),
            Hook(_RESULTS, Kind.BEFORE, self._computed),
            Hook("sglang.srt.disaggregation.utils.MetadataBuffers.set_buf", Kind.AFTER, self._hand_over),
        )

    def prepare(self, tokens: int) -> None:
        """Have the powers for prompts up to so many tokens, so that no user waits for them."""
        self._contents.tags(b"", array("q", bytes(8 * tokens)), 1)

    def _allocated(self, _result: Any, batch: Any) -> None:
        """Verify what each prompt finds in the cache, and tag what it gets; its forward pass comes after this."""
        pool = self._pool()
        if pool is None:
            return
        totals = batch.seq_lens_cpu.tolist()
        found = []
        for request, prefix, total in zip(batch.reqs, batch.prefix_lens, totals, strict=True):
            holder = holder_of(request) or hang_on(request, self._hold(request, pool))
            holder.was_verified = False
            found.append(self._findings.of_pages(request, holder, prefix))
            _tag(pool, request.kv.req_pool_idx, holder, prefix, total)
        self._end(batch.reqs, found)

    def _computed(self, _scheduler: Any, batch: Any, _result: Any) -> None:
        """Verify all pages of the prompts that are complete, before any of their last part is sent."""
        pool = self._pool()
        if pool is None:
            return
        complete = [one for one in batch.reqs if one.inflight_middle_chunks <= 0 and one.kv.holds_kv and holder_of(one)]
        found = []
        for request in complete:
            holder = holder_of(request)
            assert holder is not None
            end = _handed(request)
            with drills.fault(pool, holder, request.kv.req_pool_idx, end):
                found.append(self._findings.of_pages(request, holder, end))
            holder.was_verified = not holder.was_found
            self._findings.tally.requests_verified += holder.was_verified
            if holder.was_found:  # else it is complete with what is handed over
                self._canaries.keep(request, holder)
        self._findings.shared_pages()
        self._end(complete, found)

    def _hand_over(self, _result: Any, buffers: Any, request: Any) -> None:
        """Say beside the first token what was handed over."""
        pool, holder = self._pool(), holder_of(request)
        if pool is None or holder is None or request.bootstrap_room is None:
            return
        start, end = int(request.disagg_decode_prefix_len), _handed(request)
        proof = self._findings.proof(request.kv.req_pool_idx, start, end)
        tokens = len(request.origin_input_ids)
        told = HandOver(int(request.bootstrap_room), start, end, tokens, holder.digest, proof, holder.generation)
        holder.handed, holder.bytes = told, (end - start) * pool.bytes.sampled_bytes if proof else 0
        self._canaries.keep(request, holder)
        small, large = handover.write(told)
        torch = import_module("torch")
        index = request.metadata_buffer_index
        buffers.cached_tokens[index, handover.INT32_SLOTS] = torch.tensor(small, dtype=torch.int32)
        buffers.bootstrap_room[index, handover.UINT64_SLOTS] = torch.tensor(large, dtype=buffers.bootstrap_room.dtype)

    def _hold(self, request: Any, pool: Pool) -> Holder:
        space = namespace_of(request)
        prompt = request.origin_input_ids
        return Holder(
            contents=self._contents.tags(space, prompt, pool.page_size),
            digest=self._digests.digest(space, prompt),
            drill=self._canaries.drill(request),
        )

    def _end(self, requests: list[Any], found: list[bool]) -> None:
        """End what must not go on: SGLang retires a request that is to finish before it hands it over."""
        for request in self._findings.agree(requests, found):
            request.to_finish = aborted()
            request.skip_radix_cache_insert = True  # what it computes comes from pages that are not its own


def _tag(pool: Pool, row: int, holder: Holder, prefix: int, total: int) -> None:
    size = pool.page_size
    taken = pool.pages(row, -(-prefix // size) * size, total)
    if len(taken):
        pool.tags.take(taken, holder.generation, written=True)
    first, full = prefix // size, min(total // size, len(holder.contents))
    if first < full:  # the first of them may have been begun by an earlier part of the same prompt
        pool.tags.label(pool.pages(row, first * size, full * size), pool.array(holder.contents[first:full]))


def _handed(request: Any) -> int:
    """Return up to which token KV is computed and sent; the end of the prompt, as SGLang's own sender has it."""
    return min(int(request.extend_end), len(request.origin_input_ids))
