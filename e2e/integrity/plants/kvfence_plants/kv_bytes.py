"""`flip-before-proof`, `flip-before-send`, `flip-arrived`, `foreign-bytes`: bytes in the KV that nobody wrote there.

Of the request's own pages from token `first` on, as many as `count` tokens fill.

* `flip-before-proof`: on prefill after the forward pass, before anything was told of the bytes.
* `flip-before-send`: on prefill after the proof and the checksum of the bytes were taken, before they are read to be
  sent.
* `flip-arrived`: on decode after the transfer and before the first look.
* `foreign-bytes`: there too, and what comes to stand in the pages are the bytes of pages that another (`other`) had.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import page_table
from .arming import armed, around, tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def plant() -> None:
    """Put it into a scheduler."""
    prefill = import_module("sglang.srt.disaggregation.prefill").SchedulerDisaggregationPrefillMixin
    around(prefill, "checkpoint_disagg_prefill", _before_proof)
    mooncake = import_module("sglang.srt.disaggregation.mooncake.conn").MooncakeKVManager
    around(mooncake, "add_transfer_request", _before_send)
    decode = import_module("sglang.srt.disaggregation.decode_schedule_batch_mixin")
    around(decode.ScheduleBatchDisaggregationDecodeMixin, "prepare_for_prebuilt", _arrived)


_scheduler: list[Any] = []


def _before_proof(original: Callable[..., Any], scheduler: Any, request: Any) -> Any:
    _scheduler[:] = [scheduler]
    how = armed(request.bootstrap_room, "flip-before-proof")
    if how:
        row = scheduler.req_to_token_pool.req_to_token[request.kv.req_pool_idx]
        _flip(scheduler.token_to_kv_pool_allocator, row[how["first"] : how["first"] + how["count"]].long())
        tell("fired", request.bootstrap_room)
    return original(scheduler, request)


def _before_send(
    original: Callable[..., Any], manager: Any, room: int, pages: Any, where: slice, *args: Any, **kwargs: Any
) -> Any:
    how = armed(room, "flip-before-send")
    if how and _scheduler:
        allocator = _scheduler[0].token_to_kv_pool_allocator
        size = allocator.page_size
        first, end = (max(0, at // size - where.start) for at in (how["first"], how["first"] + how["count"]))
        sent = import_module("torch").as_tensor(pages[first:end]).long()
        if len(sent):
            _flip(allocator, page_table.slots(sent, size))
            tell("fired", room)
    return original(manager, room, pages, where, *args, **kwargs)


def _arrived(original: Callable[..., Any], batch: Any) -> Any:
    for request in batch.reqs:
        how = armed(request.bootstrap_room, "flip-arrived", "foreign-bytes")
        if how is None:
            continue
        allocator = batch.token_to_kv_pool_allocator
        row = batch.req_to_token_pool.req_to_token[request.kv.req_pool_idx]
        own = row[how["first"] : how["first"] + how["count"]].long()
        if how["plant"] == "flip-arrived":
            _flip(allocator, own)
        else:
            theirs = page_table.slots(page_table.left_behind(allocator, how["other"], own), allocator.page_size)
            if len(theirs) != len(own):
                continue
            for buffer in _buffers(allocator):
                buffer[own] = buffer[theirs]
        tell("fired", request.bootstrap_room)
    return original(batch)


def _flip(allocator: Any, slots: Any) -> None:
    for buffer in _buffers(allocator):
        buffer[slots] = -buffer[slots]  # the sign bit of each number


def _buffers(allocator: Any) -> Iterator[Any]:
    cache = allocator.get_kvcache()
    yield from (*cache.k_buffer, *cache.v_buffer)
