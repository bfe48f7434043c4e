"""What the tags cost in a decode step, beside what SGLang itself does for the same rows in the same step."""

from __future__ import annotations

import random
import time
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bench.engine.counting import Counts, counted
from bench.engine.stand import SEED, Kv, Stand
from kvfence_engine.hooked.decode import DecodeHooks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

torch: Any = import_module("torch")

LEAST_BYTES = Kv(layers=1, heads=1, numbers=1, dtype="int8")
"""The bytes of the pool play no part in a step."""
_KEY = b"of a measurement"


def measure(batch: int, context: int, page_size: int, steps: int) -> dict[str, Any]:
    """Return counts and times of decode steps of rows whose lengths are spread evenly over a page.

    Args:
        batch: rows.
        context: tokens of a row, up to a page less.
        page_size: tokens in a page.
        steps: how many are timed; operations are counted over as many as a page has tokens.
    """
    draw = random.Random(SEED)  # noqa: S311  # not for secrets
    lengths = [context - draw.randrange(page_size) for _ in range(batch)]
    stand, rows = _standing(lengths, context + page_size + steps + page_size, page_size)
    tags = DecodeHooks(lambda: stand.pool, stand.findings, stand.canaries, _KEY)._decoded
    ours, idle, theirs, kernel = _count(rows, tags, page_size)
    times = _time(rows, tags, page_size, steps)
    stand.findings.tally.found.clear()
    assert not stand.pool.tags.conflicts(), "the measurement itself gave a page to two"
    return {
        "batch": batch,
        "context": context,
        "page_size": page_size,
        "steps": steps,
        "beginning": sum(begins for begins, _, _ in times) / len(times),
        "tags": _per_step(ours),
        "most": asdict(max(ours, key=lambda one: one.operations)),
        "idle": _most(idle),
        "sglang": _per_step(theirs),
        "sglang_operations_with_one_kernel": (sum(one.operations for one in theirs) - kernel) / len(theirs),
        "times": _quantiles(times),
    }


def _standing(lengths: list[int], columns: int, page_size: int) -> tuple[Stand, Any]:
    """Return a pool in which these rows hold their pages, and the batch of them."""
    pages = len(lengths) * -(-columns // page_size)
    stand = Stand(pages, page_size, (len(lengths), columns), LEAST_BYTES)
    for row, length in enumerate(lengths, 1):
        stand.give(row, length)
        stand.pool.tags.take(stand.pool.pages(row, 0, length), row, written=True)
        stand.pool.generations[row] = row
    return stand, stand.batch(lengths)


def _alloc(rows: Any) -> Any:
    return import_module("sglang.srt.mem_cache.allocation").alloc_for_decode(rows, 1)


def _advance(rows: Any) -> None:
    """Make the batch one token longer, as SGLang does: in new tensors."""
    rows.seq_lens = rows.seq_lens + 1
    rows.seq_lens_cpu = rows.seq_lens_cpu + 1


def _count(
    rows: Any, tags: Callable[..., None], page_size: int
) -> tuple[list[Counts], list[Counts], list[Counts], int]:
    """Count over one page of steps.

    Returns:
        For the tags, for the tags in those steps that begin no page, for SGLang, and how many operations of SGLang's a
        GPU spares.
    """
    ours, idle, theirs, spared = [], [], [], 0
    for _ in range(page_size):
        host = [rows.seq_lens_cpu, rows.req_pool_indices_cpu]
        with counted(host) as counts, _inside_kernel(counts) as inside:
            slots = _alloc(rows)
        theirs.append(counts)
        spared += inside[0] - 1 if inside[0] else 0
        with counted(host) as counts:
            tags(slots, rows, 1)
        ours.append(counts)
        if not _begins(rows, page_size):
            idle.append(counts)
        _advance(rows)
    return ours, idle, theirs, spared


def _begins(rows: Any, page_size: int) -> bool:
    return bool((rows.seq_lens_cpu % page_size == 0).any())


@contextmanager
def _inside_kernel(counts: Counts) -> Iterator[list[int]]:
    """Count the operations that stand on a CPU for the one Triton kernel in which SGLang does this on a GPU."""
    paged: Any = import_module("sglang.srt.mem_cache.allocator.paged")
    plain, inside = paged.alloc_decode_naive, [0]

    def watched(*args: Any) -> None:
        before = counts.operations
        plain(*args)
        inside[0] += counts.operations - before

    paged.alloc_decode_naive = watched
    try:
        yield inside
    finally:
        paged.alloc_decode_naive = plain


def _time(rows: Any, tags: Callable[..., None], page_size: int, steps: int) -> list[tuple[bool, float, float]]:
    """Return for each step whether it began a page, and the processor seconds of the tags and of SGLang."""
    clock, times = time.thread_time, []  # other processes are not counted
    for _ in range(steps):
        begins = _begins(rows, page_size)
        start = clock()
        slots = _alloc(rows)
        between = clock()
        tags(slots, rows, 1)
        times.append((begins, clock() - between, between - start))
        _advance(rows)
    return times[steps // 10 :]


def _per_step(counts: list[Counts]) -> dict[str, float]:
    total = Counts()
    for one in counts:
        total += one
    return {name: value / len(counts) for name, value in asdict(total).items()}


def _most(counts: list[Counts]) -> dict[str, int] | None:
    """Return the most that any of these steps asked for; none when there is none."""
    every = [asdict(one) for one in counts]
    return {name: max(one[name] for one in every) for name in every[0]} if every else None


def _quantiles(times: list[tuple[bool, float, float]]) -> dict[str, float | None]:
    ours, theirs = [one[1] for one in times], [one[2] for one in times]
    beginning = [one[1] for one in times if one[0]]
    idle = [one[1] for one in times if not one[0]]
    return {
        "tags_mean": sum(ours) / len(ours),
        "tags_p50": _quantile(ours, 0.5),
        "tags_p99": _quantile(ours, 0.99),
        "beginning_p50": _quantile(beginning, 0.5),
        "idle_p50": _quantile(idle, 0.5),
        "sglang_mean": sum(theirs) / len(theirs),
        "sglang_p50": _quantile(theirs, 0.5),
        "sglang_p99": _quantile(theirs, 0.99),
    }


def _quantile(values: list[float], share: float) -> float | None:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else None
