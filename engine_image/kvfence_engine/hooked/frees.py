"""Takes the tags off pages that SGLang's allocators get back, and keeps from them what is not the giver's to give."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kvfence_engine.hooked.holders import holder_of
from kvfence_engine.hooks import Hook, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvfence_engine.hooked.pool import Pool

_PAGED = "sglang.srt.mem_cache.allocator.paged.PagedTokenToKVPoolAllocator"
_TOKENS = "sglang.srt.mem_cache.allocator.token.TokenToKVPoolAllocator"


class FreeHooks:
    """Of one rank.

    Args:
        pool: returns the pool once there is one; frees before that are the start's own.
        retired: called with the number of pages that nobody gets any more.
    """

    def __init__(self, pool: Callable[[], Pool | None], retired: Callable[[int], None]) -> None:
        self._pool = pool
        self._retired = retired
        self._withheld: Any = None
        self.hooks = (
            Hook("sglang.srt.mem_cache.common.release_kv_cache", Kind.AROUND, self._release_request),
            Hook(f"{_PAGED}._release_page_ids", Kind.BEFORE, self._release),
            Hook(f"{_TOKENS}.free", Kind.BEFORE, self._release),
            Hook(f"{_PAGED}.clear", Kind.BEFORE, self._clear),
            Hook(f"{_TOKENS}.clear", Kind.BEFORE, self._clear),
        )

    def _release(self, allocator: Any, *pages: Any) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Every way to free ends here; with pages of one token their ids are those of tokens."""
        pool = self._pool()
        if pool is None or allocator is not pool.allocator:
            return None
        if self._withheld is not None:
            isin = import_module("torch").isin
            pages = tuple(some[~isin(some.long(), self._withheld)] for some in pages)
        for some in pages:
            pool.tags.release(some)
        return (allocator, *pages), {}

    def _release_request(self, original: Callable[..., Any], request: Any, tree: Any, *, checkpoint: bool) -> Any:
        """Release a request; not all of the pages in the row of one that went wrong may be had by the next."""
        pool, holder = self._pool(), holder_of(request)
        if pool is None or holder is None or not request.kv.holds_kv:
            return original(request, tree, checkpoint=checkpoint)
        pages = pool.pages(request.kv.req_pool_idx, 0, int(request.kv.kv_allocated_len))
        if holder.retires:
            self._withhold(pool, pages, lambda: original(request, tree, checkpoint=False))
            self._retired(len(pages))
        elif not holder.was_verified:
            # Its row may name pages of others, who may be reading them, and may have lost some of its own.
            lost = None
            if not tree.supports_prefix_sharing():  # else the tree may keep some of them
                lost = pool.tags.all_held(holder.generation)
                lost[pages] = False
            foreign = pages[~pool.tags.held(pages, holder.generation)]
            keeps = checkpoint and not holder.was_found
            self._withhold(pool, foreign, lambda: original(request, tree, checkpoint=keeps))
            if lost is not None:
                pool.allocator.free_page_ids(lost.nonzero().flatten())
        else:
            return original(request, tree, checkpoint=checkpoint)
        return None

    def _withhold(self, pool: Pool, pages: Any, release: Callable[[], object]) -> None:
        """Release something, but for these pages."""
        is_grouped = pool.allocator.free_group is not None
        if is_grouped:  # SGLang collects frees and hands them back together; these must be done with when this returns
            pool.allocator.free_group_end()
        self._withheld = pages
        try:
            release()
        finally:
            self._withheld = None
            if is_grouped:
                pool.allocator.free_group_begin()

    def _clear(self, allocator: Any) -> None:
        pool = self._pool()
        if pool is not None and allocator is pool.allocator:
            pool.tags.clear()
