"""A KV pool without an engine around it: SGLang's own allocators and page table, and kvfence's `Pool` over them.

Real: `alloc_for_decode`, the allocators, `ReqToTokenPool`, and the code of kvfence. Stand-ins: the requests, the batch,
the prefix cache (it shares nothing, as on decode) and the class that holds the buffers.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from kvfence_engine.alarms import Alarms
from kvfence_engine.hooked.canaries import Canaries
from kvfence_engine.hooked.findings import Findings
from kvfence_engine.hooked.pool import Pool
from kvfence_engine.integrity.modes import Mode, Modes
from kvfence_engine.state import SharedState

torch: Any = import_module("torch")
_SRT = "sglang.srt.mem_cache"

SEED = 6


@dataclass(frozen=True)
class Kv:
    """What a token has in a pool."""

    layers: int
    heads: int
    numbers: int
    """Of a head."""
    dtype: str

    @property
    def token_bytes(self) -> int:
        """Bytes of a token: keys and values of all layers."""
        return 2 * self.layers * self.row_bytes

    @property
    def row_bytes(self) -> int:
        """Bytes of a token in one buffer."""
        return int(self.heads * self.numbers * getattr(torch, self.dtype).itemsize)


class Stand:
    """A pool of one rank.

    Args:
        pages: how many, without the dummy page.
        page_size: tokens in a page.
        table: rows and columns of the page table.
        kv: what a token has.
    """

    def __init__(self, pages: int, page_size: int, table: tuple[int, int], kv: Kv) -> None:
        slots = (pages + 1) * page_size
        shape = (slots, kv.heads, kv.numbers)
        buffers = [[torch.zeros(shape, dtype=getattr(torch, kv.dtype)) for _ in range(kv.layers)] for _ in "kv"]
        self.cache = _named("MHATokenToKVPool", k_buffer=buffers[0], v_buffer=buffers[1])
        self.allocator = _allocator(pages * page_size, page_size, self.cache)
        order = torch.randperm(pages, generator=torch.Generator().manual_seed(SEED))
        self.allocator.free_pages = self.allocator.free_pages[order]  # as after some traffic
        self.table = import_module(f"{_SRT}.memory_pool").ReqToTokenPool(*table, "cpu", enable_memory_saver=False)
        self.tree = _named(
            "ChunkCache",
            token_to_kv_pool_allocator=self.allocator,
            page_size=page_size,
            supports_prefix_sharing=lambda: False,
        )
        scheduler = SimpleNamespace(
            token_to_kv_pool_allocator=self.allocator,
            req_to_token_pool=self.table,
            tree_cache=self.tree,
            enable_overlap=False,  # there is no forward pass to wait for
        )
        self.pool = Pool(scheduler)
        enforce = Modes(Mode.ENFORCE, Mode.ENFORCE, Mode.ENFORCE)
        self.findings = _Alone(lambda: self.pool, enforce, Alarms(lambda _: None), lambda: None)
        self.canaries = Canaries(SharedState.create())

    def give(self, row: int, tokens: int) -> None:
        """Allocate for a prompt and write its row, as SGLang does at admission."""
        size = self.allocator.page_size
        slots = self.allocator.alloc(-(-tokens // size) * size)
        self.table.write((row, slice(0, tokens)), slots[:tokens].to(torch.int32))

    def batch(self, lengths: list[int]) -> Any:
        """Return a decode batch of the rows from 1 on."""
        rows = torch.arange(1, len(lengths) + 1)
        return SimpleNamespace(
            device="cpu",
            maybe_evict_swa=lambda: None,
            tree_cache=self.tree,
            req_to_token_pool=self.table,
            model_config=SimpleNamespace(is_encoder_decoder=False),
            req_pool_indices=rows,
            req_pool_indices_cpu=rows.clone(),
            seq_lens=torch.tensor(lengths),
            seq_lens_cpu=torch.tensor(lengths),
            reqs=[SimpleNamespace(kv=SimpleNamespace(kv_allocated_len=n, kv_committed_len=n)) for n in lengths],
        )


class _Alone(Findings):
    """Without other ranks to agree with."""

    def any_rank(self, flags: list[bool]) -> list[bool]:
        return flags


def _named(name: str, **attributes: Any) -> Any:
    """Return an object of a class with this name, which is what `Pool` looks at."""
    made = type(name, (), {})()
    for attribute, value in attributes.items():
        setattr(made, attribute, value)
    return made


def _allocator(tokens: int, page_size: int, cache: Any) -> Any:
    rest = {"dtype": torch.bfloat16, "device": "cpu", "kvcache": cache, "need_sort": False}
    if page_size == 1:
        return import_module(f"{_SRT}.allocator.token").TokenToKVPoolAllocator(tokens, **rest)
    return import_module(f"{_SRT}.allocator.paged").PagedTokenToKVPoolAllocator(tokens, page_size, **rest)
