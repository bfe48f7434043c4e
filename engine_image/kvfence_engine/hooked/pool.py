"""The KV pool of one rank as the defences see it: rows of page tables, tags, and the bytes themselves."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from operator import index
from typing import Any

from kvfence_engine.hooks import HookError
from kvfence_engine.integrity.scrub import KvPages
from kvfence_engine.integrity.tags import TagTable

_BUFFERS = {"MHATokenToKVPool": ("k_buffer", "v_buffer"), "MLATokenToKVPool": ("kv_buffer",)}
"""Pools that are known, by the exact name of their class, and where each keeps one buffer for each layer."""
_BESIDE = ("k_scale_buffer", "native_k_scale_buffer", "dq_k_buffer", "kv_scale_buffer")
"""What such pools have beside their buffers for some types of numbers; it would stay unscrubbed."""
_ALLOCATORS = ("TokenToKVPoolAllocator", "PagedTokenToKVPoolAllocator")
_TREES = ("RadixCache", "UnifiedRadixCache", "ChunkCache")


class Pool:
    """Of one rank.

    Args:
        scheduler: SGLang's, with its pool at its final size.

    Raises:
        HookError: naming what is not known to hold here.
    """

    def __init__(self, scheduler: Any) -> None:
        torch = import_module("torch")
        self.allocator = scheduler.token_to_kv_pool_allocator
        self.page_size = int(self.allocator.page_size)
        self._rows = scheduler.req_to_token_pool.req_to_token
        cache = self.allocator.get_kvcache()
        _check("KV pool", cache, tuple(_BUFFERS))
        _check("allocator", self.allocator, _ALLOCATORS)
        _check("prefix cache", scheduler.tree_cache, _TREES)
        device = self.allocator.device

        self.zeros = partial(torch.zeros, dtype=torch.int64, device=device)
        """Makes an array beside the tags."""
        self.array = partial(torch.as_tensor, dtype=torch.int64, device=device)
        """Puts numbers of the host beside the tags."""
        counting = partial(torch.arange, dtype=torch.int64, device=device)
        self.tags = TagTable(int(self.allocator.size) // self.page_size + 1, self.zeros, counting)
        self.generations = self.zeros(len(self._rows))
        """Of whoever has each row of the page table now; read on the device alone."""
        buffers = [buffer for name in _BUFFERS[type(cache).__name__] for buffer in getattr(cache, name)]
        try:
            self.bytes = KvPages(buffers, self.page_size, partial(_words, torch))
        except ValueError as error:
            raise HookError(f"the KV pool cannot be scrubbed: {error}") from error
        if len(self.bytes) != len(self.tags):
            raise HookError(f"the KV pool has {len(self.bytes)} pages, and its allocator {len(self.tags)}")
        if beside := [name for name in _BESIDE if getattr(cache, name, None) is not None]:
            raise HookError(
                f"page tagging was not shown to hold for a KV pool with a {beside[0]}: use another KV dtype"
            )
        self._stream = torch.cuda.current_stream if str(device).startswith("cuda") else None
        # A request that has ended may have one more forward pass under way, which writes where it had its pages.
        self._forward = scheduler.forward_stream if scheduler.enable_overlap else None

    def pages(self, row: int, start: int, end: int) -> Any:
        """Return the ids of the pages that hold the tokens from `start` up to `end` of a row.

        Raises:
            TypeError: for a request without a row, of which an index would make the whole table.
        """
        return self._rows[index(row), start - start % self.page_size : end : self.page_size].long() // self.page_size

    def slots(self, row: int, start: int, end: int) -> Any:
        """Return where the tokens from `start` up to `end` of a row lie."""
        return self._rows[index(row), start:end].long()

    def shun(self, row: int, pages: Any, shunned: Any) -> None:
        """Have a row name the dummy page in the place of some of its pages, from its start on."""
        named = (pages * ~shunned)[:, None] * self.page_size + self.array(range(self.page_size))
        places = self._rows[row, : len(pages) * self.page_size]
        places.copy_(named.flatten()[: len(places)])

    def zero(self, pages: Any) -> int:
        """Zero pages and return how many bytes, once it is done: what comes over the network keeps to no stream."""
        if self._stream is not None and self._forward is not None:
            self._stream().wait_stream(self._forward)
        zeroed = int(self.bytes.zero(pages))
        if self._stream is not None:
            self._stream().synchronize()
        return zeroed


def _words(torch: Any, rows: Any) -> Any:
    """Show rows as the widest integers that fit into them."""
    wide = rows.shape[1] * rows.element_size()
    kinds = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.uint8}
    return rows.view(next(kind for size, kind in kinds.items() if wide % size == 0))


def _check(what: str, thing: Any, known: tuple[str, ...]) -> None:
    if type(thing).__name__ not in known:
        raise HookError(
            f"page tagging was not shown to hold with the {what} {type(thing).__name__}, only with {', '.join(known)}"
        )
