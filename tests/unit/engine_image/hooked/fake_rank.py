"""One rank of SGLang as the hooks see it: its pool, page table and allocator as numpy arrays, and no model.

It calls a hook where SGLang does, and does there what SGLang does as far as a hook looks at it. What SGLang really
does, and that the hooks are where they belong, the tests with real engines show (`e2e/integrity`).
"""

from __future__ import annotations

import sys
import time
import types
from array import array as tokens_of
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kvfence_engine.alarms import Alarms
from kvfence_engine.hooked.holders import Holder, holder_of
from kvfence_engine.hooked.integrity import Integrity
from kvfence_engine.integrity.modes import Mode, Modes
from kvfence_engine.state import Alarm, SharedState
from tests.unit.engine_image.hooked.fake_modules import put_in_place, tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pytest

PAGE = 4
PAGES = 16
"""Beside the dummy page."""
ROWS = 6
WIDTH = 32
"""Tokens in a row of the page table."""
ROOM = 77


@dataclass
class Kv:
    """What a request holds."""

    req_pool_idx: int | None = None
    kv_committed_len: int = 0
    kv_allocated_len: int = 0

    @property
    def holds_kv(self) -> bool:
        """Whether it has a row."""
        return self.req_pool_idx is not None


@dataclass(eq=False)
class Request:
    """One of SGLang's."""

    origin_input_ids: Sequence[int]
    rid: str = "user"
    extra_key: str | None = None
    cache_salt: str | None = None
    lora_id: str | None = None
    bootstrap_host: str = "10.0.0.1"
    bootstrap_port: int = 8998
    bootstrap_room: int = ROOM
    kv: Kv = field(default_factory=Kv)
    to_finish: Any = None
    skip_radix_cache_insert: bool = False
    inflight_middle_chunks: int = 0
    extend_end: int = 0
    disagg_decode_prefix_len: int = 0
    metadata_buffer_index: int = 0
    return_logprob: bool = False
    output: list[str] = field(default_factory=list)

    def finished(self) -> bool:
        """Whether it was ended."""
        return False

    @property
    def row(self) -> int:
        """Its place in the page table."""
        assert self.kv.req_pool_idx is not None
        return self.kv.req_pool_idx

    @property
    def holder(self) -> Holder:
        """What the hooks know of it."""
        holder = holder_of(self)
        assert holder is not None
        return holder


class MHATokenToKVPool:
    """Keys and values of two layers."""

    def __init__(self) -> None:
        self.k_buffer = [tensor(np.ones(((PAGES + 1) * PAGE, 1, 2))) for _ in range(2)]
        self.v_buffer = [tensor(np.ones(((PAGES + 1) * PAGE, 1, 2))) for _ in range(2)]

    def write(self, slots: Any, value: int) -> None:
        """Put KV where tokens lie."""
        for buffer in (*self.k_buffer, *self.v_buffer):
            buffer[slots] = value


class PagedTokenToKVPoolAllocator:
    """Gives out the lowest pages, and takes back what it is given."""

    device = "cpu"
    page_size = PAGE
    size = PAGES * PAGE
    free_group: Any = None

    def __init__(self, rank: FakeRank) -> None:
        self._rank = rank
        self.cache = MHATokenToKVPool()
        self.free_pages = set(range(1, PAGES + 1))

    def get_kvcache(self) -> MHATokenToKVPool:
        """Return the pool."""
        return self.cache

    def alloc(self, tokens: int) -> Any:
        """Return slots for so many tokens, whole pages of them."""
        pages = sorted(self.free_pages)[: -(-tokens // PAGE)]
        self.free_pages -= set(pages)
        return (tensor(pages)[:, None] * PAGE + tensor(range(PAGE))).reshape(-1)

    def free(self, slots: Any) -> None:
        """Take back the pages of slots."""
        self.free_page_ids(tensor(np.unique(slots // PAGE)))

    def free_page_ids(self, pages: Any) -> None:
        """Take back pages, as far as the hook lets it."""
        changed = self._rank.hook("PagedTokenToKVPoolAllocator._release_page_ids")(self, pages)
        if changed is not None:
            pages = changed[0][1]
        self.free_pages |= {int(page) for page in pages}


class ChunkCache:
    """A cache that shares nothing."""

    def supports_prefix_sharing(self) -> bool:
        """Whether it does."""
        return False


class FakeRank:
    """A scheduler with the hooks of one role in it.

    Args:
        role: "prefill" or "decode".
        modes: which defences are on.
        state: a boot's.
        patch: puts modules of SGLang and torch in the place of those that are not here.
    """

    def __init__(self, role: str, modes: Modes, state: SharedState, patch: pytest.MonkeyPatch) -> None:
        put_in_place(role, patch)
        self.alarm = Alarm()
        self.told: dict[str, Any] = {}
        """What it attested when it last said by itself that something is new."""
        self.integrity = Integrity(modes, "pool", state, Alarms(self._sound), self._changed)
        self._hooks = {hook.target: hook.function for hook in self.integrity.hooks()}
        self.table = tensor(np.zeros((ROWS, WIDTH)))
        self.allocator = PagedTokenToKVPoolAllocator(self)
        self.running_batch = types.SimpleNamespace(reqs=[])
        self.scheduler = types.SimpleNamespace(
            token_to_kv_pool_allocator=self.allocator,
            req_to_token_pool=types.SimpleNamespace(req_to_token=self.table),
            tree_cache=ChunkCache(),
            attn_tp_cpu_group=None,
            invariant_checker=types.SimpleNamespace(max_total_num_tokens=PAGES * PAGE),
            enable_overlap=False,
            model_config=types.SimpleNamespace(context_len=WIDTH),
            output_streamer=types.SimpleNamespace(stream_output=lambda *_: None),
            metrics_reporter=types.SimpleNamespace(enable_metrics=False),
            running_batch=self.running_batch,
        )
        sys.modules["sglang.srt.mem_cache.common"].release_kv_cache = self.release  # type: ignore[attr-defined]
        self.integrity.made(self.scheduler, 0)
        self._rows = iter(range(1, ROWS))

    def _changed(self) -> None:
        self.told = self.integrity.tell()

    def _sound(self, alarm: Alarm) -> None:
        self.alarm = alarm

    def hook(self, name: str) -> Callable[..., Any]:
        """Return the function that is hung into the place whose path ends so."""
        (function,) = (function for target, function in self._hooks.items() if target.endswith(name))
        return function

    @property
    def found(self) -> dict[str, int]:
        """What was found, by kind."""
        found: dict[str, int] = self.integrity.tell()["found"]
        return found

    def request(self, tokens: Sequence[int], **fields: Any) -> Request:
        """Make one, as SGLang does when it was read."""
        made = Request(tokens_of("q", tokens), **fields)
        self.hook("Req.__init__")(None, made)
        return made

    def give(self, request: Request, tokens: int, prefix: Any = ()) -> None:
        """Give it a row with slots for so many tokens, the first of them those of a prefix."""
        kv = request.kv
        if kv.req_pool_idx is None:
            kv.req_pool_idx = next(self._rows)
        held = tensor(prefix) if len(prefix) else self.table[kv.req_pool_idx, : kv.kv_allocated_len]
        new = self.allocator.alloc(tokens - len(held))
        self.table[kv.req_pool_idx, : len(held) + len(new)] = np.concatenate((held, new))
        kv.kv_committed_len, kv.kv_allocated_len = tokens, len(held) + len(new)

    def pages(self, request: Request) -> Any:
        """Return the pages that its row names."""
        return self.table[request.row, : request.kv.kv_allocated_len : PAGE] // PAGE

    def slots(self, request: Request) -> Any:
        """Return where its tokens lie."""
        return self.table[request.row, : request.kv.kv_committed_len]

    def release(self, request: Request, tree: Any = None, *, checkpoint: bool = False) -> None:
        """Take back what a request has, as SGLang does through one function."""

        def original(request: Request, _tree: Any, *, checkpoint: bool) -> None:
            del checkpoint
            self.allocator.free(self.table[request.row, : request.kv.kv_allocated_len])
            request.kv = Kv()

        around = self.hook("common.release_kv_cache")
        around(original, request, tree or self.scheduler.tree_cache, checkpoint=checkpoint)


class Prefill(FakeRank):
    """Computes prompts."""

    def __init__(self, modes: Modes, state: SharedState, patch: pytest.MonkeyPatch) -> None:
        super().__init__("prefill", modes, state, patch)
        width = 16
        self.buffers = types.SimpleNamespace(
            cached_tokens=tensor(np.zeros((ROWS, width)), np.int32), bootstrap_room=tensor(np.zeros((ROWS, 8)))
        )

    def allocated(self, request: Request, prefix: Any = ()) -> None:
        """Give a prompt its pages, behind what the cache is said to have of it."""
        total = len(request.origin_input_ids)
        self.give(request, total, prefix)
        request.extend_end = total
        batch = types.SimpleNamespace(reqs=[request], prefix_lens=[len(prefix)], seq_lens_cpu=tensor([total]))
        self.hook("allocation.alloc_for_extend")(None, batch)

    def computed(self, request: Request) -> None:
        """Compute it; its KV is the number of its first token."""
        self.allocator.cache.write(self.slots(request), int(request.origin_input_ids[0]))
        self.hook("process_batch_result_disagg_prefill")(None, types.SimpleNamespace(reqs=[request]), None)

    def handed_over(self, request: Request) -> tuple[Any, Any]:
        """Return the metadata that goes to decode: the two rows of numbers."""
        self.hook("MetadataBuffers.set_buf")(None, self.buffers, request)
        index = request.metadata_buffer_index
        return self.buffers.cached_tokens[index].copy(), self.buffers.bootstrap_room[index].copy()


class Decode(FakeRank):
    """Gets KV and reads it."""

    def __init__(self, modes: Modes, state: SharedState, patch: pytest.MonkeyPatch) -> None:
        super().__init__("decode", modes, state, patch)
        self.waiting: list[tuple[Any, ...]] = []

    def allocated(self, request: Request) -> None:
        """Make room for the KV of a prompt."""
        self.give(request, len(request.origin_input_ids))
        self.hook("DecodePreallocQueue._pre_alloc")(None, None, request)

    def arrived(self, request: Request, metadata: tuple[Any, Any], kv: int | None) -> None:
        """Have a transfer done, with these numbers as all of its KV; none: it left all of it out."""
        if kv is not None:
            self.allocator.cache.write(self.slots(request), kv)
        buffers = types.SimpleNamespace(cached_tokens=metadata[0][None], bootstrap_room=metadata[1][None])
        waiting = types.SimpleNamespace(req=request, metadata_buffer_index=0)
        commit = self.hook("DecodeTransferQueue._commit_transfer_to_req")
        commit(lambda *_: True, types.SimpleNamespace(metadata_buffers=buffers), waiting)

    def begins(self, *requests: Request) -> list[Request]:
        """Return those that go on to their first decode step, and run from then on."""
        batch = Batch(list(requests))
        self.hook("_verify_kv_checksums")(self.scheduler, batch)
        self.running_batch.reqs += batch.reqs
        return batch.reqs

    def steps(self, request: Request) -> None:
        """Make room for one more token of an answer, as a decode step does."""
        before = request.kv.kv_committed_len
        if before % PAGE == 0:
            slots = self.allocator.alloc(PAGE)[:1]
            request.kv.kv_allocated_len += PAGE
        else:
            slots = self.table[request.row, before - 1 : before] + 1
        self.table[request.row, before] = slots[0]
        request.kv.kv_committed_len += 1
        batch = types.SimpleNamespace(req_pool_indices=tensor([request.row]), seq_lens_cpu=tensor([before]))
        self.hook("allocation.alloc_for_decode")(slots, batch, 1)

    def times_out(self, request: Request, *, drained: bool) -> None:
        """Have the release of an aborted transfer be due."""
        receiver = types.SimpleNamespace(
            kv_mgr=types.SimpleNamespace(is_abort_release_safe=lambda _room, _acks: drained)
        )
        one = types.SimpleNamespace(req=request, kv_receiver=receiver)
        queue = types.SimpleNamespace(_deferred_releases=[(one, 0.0, time.monotonic(), 0, 1)])
        self.hook("resolve_deferred_releases")(queue)
        self.release(request)


@dataclass
class Batch:
    """What is about to be decoded."""

    reqs: list[Request]

    def filter_batch(self, *, keep_indices: Iterable[int]) -> None:
        """Keep some of them."""
        self.reqs = [self.reqs[i] for i in keep_indices]


def modes(*, tagging: bool = False, scrubbing: bool = False, coverage: bool = False) -> Modes:
    """Return these enforced, and nothing else on."""
    on = {True: Mode.ENFORCE, False: Mode.DISABLED}
    return Modes(on[tagging], on[scrubbing], on[coverage])
