"""What a request costs once, on prefill and on decode: hashes, tags, verdicts, zeroes, proofs; times and bytes.

The pool has the rows of a stated model, and as many of its layers as fit here: times that grow with the bytes of a page
are told for each byte, beside what plain writing of as many bytes takes in the same run.
"""

from __future__ import annotations

import statistics
import time
from array import array
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from bench.engine.counting import counted
from bench.engine.stand import SEED, Kv, Stand
from kvfence_engine.hooked import prefill
from kvfence_engine.hooked.decode import DecodeHooks
from kvfence_engine.hooked.holders import Holder, hang_on
from kvfence_engine.hooked.prefill import PrefillHooks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Part = tuple[Callable[[], object], Callable[[], object], bool]

torch: Any = import_module("torch")

MODEL = Kv(layers=32, heads=8, numbers=128, dtype="bfloat16")
"""An 8B model with grouped queries, on one GPU."""
LAYERS_HERE = 4
_KEY = b"of a measurement"
_ROW = 1


def measure(tokens: int, page_size: int, repeats: int) -> dict[str, Any]:
    """Return the processor seconds of each part for one prompt, and bytes and operations of those that are tags.

    Args:
        tokens: length of the prompt.
        page_size: tokens in a page.
        repeats: of each part; medians are told.
    """
    kv = Kv(LAYERS_HERE, MODEL.heads, MODEL.numbers, MODEL.dtype)
    pages = -(-tokens // page_size)
    stand = Stand(pages, page_size, (_ROW, tokens), kv)
    stand.give(_ROW, tokens)
    request = _request(tokens)
    seconds: dict[str, float] = {}
    counts: dict[str, dict[str, int]] = {}
    for name, (prepare, run, is_tags) in _parts(stand, request, tokens).items():
        prepare()
        seconds[name] = statistics.median(_timed(prepare, run) for _ in range(repeats))
        if is_tags:
            prepare()
            with counted() as found, _brought(stand) as brought:
                run()
            counts[name] = asdict(found) | {"copies": len(brought)}
    assert not stand.findings.tally.found, stand.findings.tally.found
    return {
        "tokens": tokens,
        "page_size": page_size,
        "pages": pages,
        "seconds": seconds,
        "counts": counts,
        "kv_bytes_here": tokens * kv.token_bytes,
        "kv_bytes": tokens * MODEL.token_bytes,
        "zeroed_here": stand.pool.zero(stand.pool.pages(_ROW, 0, tokens)),
        "zeroed": pages * page_size * MODEL.token_bytes,
        "proof_bytes": 2 * tokens * MODEL.row_bytes,
    }


def memory(page_size: int, model: Kv) -> dict[str, Any]:
    """Return the bytes of the tags of a page, from a table that is made, beside those of its KV."""
    pages = 1000
    stand = Stand(pages, page_size, (1, 1), Kv(1, 1, 1, "int8"))
    tables = [value for value in vars(stand.pool.tags).values() if torch.is_tensor(value) and len(value) > pages]
    tags = sum(table.nbytes for table in tables) / (pages + 1)
    return {"page_size": page_size, "tag_bytes": tags, "kv_bytes": page_size * model.token_bytes}


def _parts(stand: Stand, request: Any, tokens: int) -> dict[str, Part]:
    """Return for each part what comes before it, what is timed, and whether it is work on tags."""
    pool, findings = stand.pool, stand.findings
    on_prefill = PrefillHooks(lambda: pool, findings, stand.canaries, _KEY)
    on_prefill.prepare(tokens)
    on_decode = DecodeHooks(lambda: pool, findings, stand.canaries, _KEY)
    holder = hang_on(request, on_prefill._hold(request, pool))
    pages, slots = pool.pages(_ROW, 0, tokens), pool.slots(_ROW, 0, tokens)
    hashes, digests, prompt = on_prefill._contents, on_prefill._digests, request.origin_input_ids

    def release() -> None:
        pool.tags.release(pages)

    def take() -> None:
        release()
        holder.generation = 7
        prefill._tag(pool, _ROW, holder, 0, tokens)

    def arrived() -> None:
        release()
        pool.tags.take(pages, 8, written=False)
        pool.tags.arrived(pages, 8)

    return {
        "hash contents": (_nothing, lambda: hashes.tags(b"", prompt, pool.page_size), False),
        "digest": (_nothing, lambda: digests.digest(b"", prompt), False),
        "tag and label": (release, partial(prefill._tag, pool, _ROW, holder, 0, tokens), True),
        "verify on prefill": (take, partial(findings.of_pages, request, holder, tokens), True),
        "proof": (_nothing, lambda: pool.bytes.proof(slots), False),
        "take": (release, lambda: pool.tags.take(pages, 8, written=False), True),
        "arrive": (_nothing, lambda: pool.tags.arrived(pages, 8), True),
        "verify on decode": (arrived, lambda: findings.of_pages(request, Holder(8), tokens), True),
        "tag and zero on decode": (release, lambda: on_decode._allocated(None, None, request), True),
        "release": (take, release, True),
        "zero": (_nothing, lambda: pool.zero(pages), False),
        **_baselines(stand, tokens),
    }


def _baselines(stand: Stand, tokens: int) -> dict[str, Part]:
    """Return what SGLang does anyway, or the plainest way to write as many bytes."""
    pool, size = stand.pool, stand.allocator.page_size
    slots = pool.slots(_ROW, 0, tokens)
    buffers = [*stand.cache.k_buffer, *stand.cache.v_buffer]
    run = [buffer[size : size + -(-tokens // size) * size] for buffer in buffers]
    made = torch.ones((tokens, *buffers[0].shape[1:]), dtype=buffers[0].dtype)

    def in_a_row() -> None:
        for buffer in run:
            buffer.zero_()

    def write() -> None:
        for buffer in buffers:
            buffer[slots] = made

    order = pool.pages(_ROW, 0, tokens).clone()

    def give_back() -> None:
        stand.allocator.free_pages = order

    return {
        "baseline: zero in a row": (_nothing, in_a_row, False),
        "baseline: write KV once": (_nothing, write, False),
        "baseline: SGLang's allocation": (give_back, partial(stand.give, _ROW, tokens), False),
    }


@contextmanager
def _brought(stand: Stand) -> Iterator[list[object]]:
    """Collect what the host puts beside the tags: on a GPU it waits for each of these copies."""
    put, brought = stand.pool.array, list[object]()

    def collected(numbers: Any) -> Any:
        brought.append(numbers)
        return put(numbers)

    stand.pool.array = collected  # type: ignore[assignment]
    try:
        yield brought
    finally:
        stand.pool.array = put


def _request(tokens: int) -> Any:
    draw = torch.Generator().manual_seed(SEED)
    kv = SimpleNamespace(req_pool_idx=_ROW, kv_committed_len=tokens, kv_allocated_len=tokens, holds_kv=True)
    return SimpleNamespace(
        kv=kv,
        extra_key=None,
        cache_salt="a tenant",
        lora_id=None,
        rid="a request",
        bootstrap_host="prefill.example",
        origin_input_ids=array("q", torch.randint(1, 100_000, (tokens,), generator=draw).tolist()),
    )


def _nothing() -> None:
    """Be what comes before a part that needs nothing."""


def _timed(prepare: Callable[[], object], run: Callable[[], object]) -> float:
    prepare()
    start = time.thread_time()
    run()
    return time.thread_time() - start
