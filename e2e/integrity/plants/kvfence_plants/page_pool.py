"""`double-page`: decode's allocator gives the request pages that another (`other`) still holds.

They come to stand in the list of free pages, as if they had been freed while they were held: those of the other from
its token `other_first` on, as many as `count` tokens fill, where the request gets them for its tokens from `first` on.

What a plant does to the pool is mended once nobody is there: pages that are free twice, and pages that a plant has
taken out of a page table so that nobody frees them. SGLang would end itself, and the next attack would not be alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .arming import armed, around, tell
from .known import REQUESTS

if TYPE_CHECKING:
    from collections.abc import Callable

_hurt: list[Any] = []
_scheduler: list[Any] = []


def plant() -> None:
    """Put it into a scheduler."""
    scheduler = import_module("sglang.srt.managers.scheduler").Scheduler
    around(scheduler, "on_idle", _mend)
    around(scheduler, "init_req_max_new_tokens", _remember)
    around(import_module("sglang.srt.disaggregation.decode").DecodeReqToTokenPool, "alloc", _alloc)


def will_be_lost(pages: Any) -> None:
    """Have pages that nobody will free given back when nobody is there."""
    _hurt.append(pages)


def _remember(original: Callable[..., Any], scheduler: Any, request: Any) -> Any:
    _scheduler[:] = [scheduler]
    return original(scheduler, request)


def _alloc(original: Callable[..., Any], rows: Any, requests: list[Any]) -> Any:
    how = armed(requests[0].bootstrap_room, "double-page")
    request = REQUESTS.of(how["other"]) if how else None
    if how and request is not None and request.kv.req_pool_idx is not None:
        torch, allocator = import_module("torch"), _scheduler[0].token_to_kv_pool_allocator
        size = allocator.page_size
        other = rows.req_to_token[request.kv.req_pool_idx]
        held = other[how["other_first"] : how["other_first"] + how["count"] : size].long() // size
        allocator.merge_and_sort_free()
        at = how["first"] // size
        allocator.free_pages = torch.cat((allocator.free_pages[:at], held, allocator.free_pages[at:]))
        will_be_lost(held)  # where both are ended, nobody may be left to free it
        tell("fired", requests[0].bootstrap_room)
    return original(rows, requests)


def _mend(original: Callable[..., Any], scheduler: Any) -> Any:
    if _hurt and scheduler.is_fully_idle():
        torch, allocator = import_module("torch"), scheduler.token_to_kv_pool_allocator
        allocator.merge_and_sort_free()
        allocator.free_pages = torch.unique(allocator.free_pages)
        lost = torch.cat(_hurt)
        allocator.free_page_ids(lost[~torch.isin(lost, allocator.free_pages)])
        _hurt.clear()
    return original(scheduler)
