"""`swap-table`, `stale-table`: on decode entries of page tables are wrong, after the transfer, before the first look.

Of the request's row from token `first` on, as many entries as `count` tokens have.

* `swap-table`: exchanged with those of a request that runs (`other`), from its token `other_first` on.
* `stale-table`: they name pages that a finished request (`other`) had, which are free.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import page_pool
from .arming import armed, around, tell
from .known import PAGES, REQUESTS

if TYPE_CHECKING:
    from collections.abc import Callable


def plant() -> None:
    """Put it into a scheduler."""
    decode = import_module("sglang.srt.disaggregation.decode_schedule_batch_mixin")
    around(decode.ScheduleBatchDisaggregationDecodeMixin, "prepare_for_prebuilt", _ready)


def slots(pages: Any, size: int) -> Any:
    """Return where the tokens of these pages lie."""
    torch = import_module("torch")
    return (pages[:, None] * size + torch.arange(size)).reshape(-1)


def left_behind(allocator: Any, room: int, like: Any) -> Any:
    """Return pages that a finished request had and that are still free and as it left them, as many as `like` fills.

    Its first page is left out: of what the tests plant it holds the least.
    """
    torch = import_module("torch")
    size = allocator.page_size
    had = PAGES.of(room)
    if had is None:
        return like[:0]
    free = had[torch.isin(had, allocator.get_all_free_pages())]
    return free[free != had[0]][: len(like) // size]


def _ready(original: Callable[..., Any], batch: Any) -> Any:
    table, allocator = batch.req_to_token_pool.req_to_token, batch.token_to_kv_pool_allocator
    for request in batch.reqs:
        room, row = request.bootstrap_room, table[request.kv.req_pool_idx]
        how = armed(room, "swap-table", "stale-table")
        if how:
            entries = row[how["first"] : how["first"] + how["count"]]
            wrong = _swap if how["plant"] == "swap-table" else _stale
            if wrong(allocator, table, entries, how):
                tell("fired", room)
        REQUESTS.keep(room, request)
        PAGES.keep(room, row[: len(request.origin_input_ids) : allocator.page_size].long() // allocator.page_size)
        tell("decoding", room)
    return original(batch)


def _swap(allocator: Any, table: Any, entries: Any, how: dict[str, Any]) -> bool:
    request = REQUESTS.of(how["other"])
    if request is None or request.kv.req_pool_idx is None:  # it does not run any more
        return False
    others = table[request.kv.req_pool_idx, how["other_first"] : how["other_first"] + how["count"]]
    mine, theirs = entries.clone(), others.clone()
    entries.copy_(theirs)
    others.copy_(mine)
    for some in (mine, theirs):  # where one of the two is ended, nobody may be left to free them
        page_pool.will_be_lost(some[:: allocator.page_size].long() // allocator.page_size)
    return True


def _stale(allocator: Any, _table: Any, entries: Any, how: dict[str, Any]) -> bool:
    size, lost = allocator.page_size, entries.long()
    stale = slots(left_behind(allocator, how["other"], lost), size)
    if len(stale) != len(lost):
        return False
    entries.copy_(stale)
    page_pool.will_be_lost(lost[::size] // size)
    return True
