"""The share that the tags have in a decode step on a GPU. Needs torch and the folder `engine_image`, and no SGLang.

    PYTHONPATH=engine_image python bench/engine/on_gpu.py
    PYTHONPATH=engine_image python bench/engine/on_gpu.py --device cpu    # shows that it runs, and no more

The step is made up: matrix products and reads of a KV cache in a CUDA graph, as many as take `--target-ms`. Between
steps the real hook of kvfence runs, under `torch.cuda.set_sync_debug_mode("error")`, which raises where torch would
make the host wait; where it does, that is told, and the times are taken without. As with SGLang's overlap, the host
begins a step before the one before it has ended, and then waits for that one. Steps with and without tags come in
turns, in blocks.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from kvfence_engine.hooked.decode import DecodeHooks
from kvfence_engine.integrity.tags import TagTable

if TYPE_CHECKING:
    from collections.abc import Callable

torch: Any = import_module("torch")

BLOCK = 32
"""Steps with tags, and then as many without."""
GOAL = 0.003
"""Share of a step."""


@dataclass(frozen=True)
class Asked:
    """What is measured."""

    device: str
    batch: int
    context: int
    page_size: int
    steps: int
    target_ms: float

    @property
    def is_gpu(self) -> bool:
        """Whether there is a device besides the host."""
        return self.device.startswith("cuda")


def main() -> None:
    """Measure one cell or all, and print a line of JSON for each."""
    parser = argparse.ArgumentParser(prog="bench/engine/on_gpu.py", description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, nargs="*", default=[1, 32, 256])
    parser.add_argument("--page-size", type=int, nargs="*", default=[1, 16, 64])
    parser.add_argument("--context", type=int, default=32 * 1024, help="tokens of a row: sizes the tables of tags")
    parser.add_argument("--steps", type=int, default=640, help="with tags, and as many without")
    parser.add_argument("--target-ms", type=float, default=10.0, help="of a step without tags")
    given = parser.parse_args()
    for batch in given.batch:
        for size in given.page_size:
            asked = Asked(given.device, batch, given.context, size, given.steps, given.target_ms)
            sys.stdout.write(json.dumps(measure(asked)) + "\n")
            sys.stdout.flush()


def measure(asked: Asked) -> dict[str, Any]:
    """Return the time of a step with and without tags, and what the tags take of host and device alone."""
    with torch.inference_mode():
        step, blocks = _step(asked)
        rows = _Rows(asked)
        waits = rows.waits()
        _run(asked, step, rows, BLOCK, with_tags=True)
        seconds: dict[bool, list[float]] = {True: [], False: []}
        host: list[float] = []
        for _ in range(max(1, asked.steps // BLOCK)):
            for with_tags in (True, False):
                took, of_tags = _run(asked, step, rows, BLOCK, with_tags=with_tags)
                seconds[with_tags].append(took / BLOCK)
                host += of_tags
        device = _device_seconds(asked, rows)
        plain = statistics.median(seconds[False])
        return {
            "device": torch.cuda.get_device_name() if asked.is_gpu else "cpu: no graph, says nothing of a GPU",
            "batch": asked.batch,
            "context": asked.context,
            "page_size": asked.page_size,
            "step_ms": plain * 1000,
            "parts_of_a_step": blocks,
            "share_of_step": statistics.median(seconds[True]) / plain - 1,
            "goal": GOAL,
            "waits": waits,
            "tags_host_us_p50": statistics.median(host) * 1e6,
            "tags_host_us_p99": sorted(host)[int(0.99 * len(host))] * 1e6,
            "tags_device_us": None if device is None else device * 1e6,
            "share_of_device_time": None if device is None else device / plain,
            "pages_given_twice": rows.tags.conflicts(),
        }


class _Rows:
    """Rows that grow by a token a step, their lengths spread over a page, and the tags of their pages."""

    def __init__(self, asked: Asked) -> None:
        self._asked, self._done = asked, 0
        draw = random.Random(6)  # noqa: S311  # not for secrets
        self._lengths = torch.tensor([asked.context - draw.randrange(asked.page_size) for _ in range(asked.batch)])
        zeros = partial(torch.zeros, dtype=torch.int64, device=asked.device)
        steps = 2 * asked.steps + 5 * BLOCK + asked.page_size
        pages = 2 + asked.batch * (1 + (asked.context + steps) // asked.page_size)
        self.tags = TagTable(pages, zeros, partial(torch.arange, dtype=torch.int64, device=asked.device))
        pool = SimpleNamespace(page_size=asked.page_size, tags=self.tags, generations=zeros(asked.batch + 1))
        pool.generations.copy_(torch.arange(asked.batch + 1))
        self._rows = torch.arange(1, asked.batch + 1, device=asked.device)
        parts: Any = (lambda: pool, SimpleNamespace(), SimpleNamespace(), b"a key")
        self._hook: Callable[..., None] = DecodeHooks(*parts)._decoded
        places = self._lengths + torch.arange(steps)[:, None]
        pages_of = 1 + torch.arange(asked.batch) + asked.batch * (places // asked.page_size)
        self._slots = (pages_of * asked.page_size + places % asked.page_size).to(asked.device)

    def advance(self, *, with_tags: bool) -> float:
        """Go one token on; return the seconds of the host in the hook. Its pages are fresh, as an allocator's are."""
        batch = SimpleNamespace(req_pool_indices=self._rows, seq_lens_cpu=self._lengths + self._done)
        slots = self._slots[self._done]
        self._done += 1
        if not with_tags:
            return 0.0
        start = time.perf_counter()
        self._hook(slots, batch, 1)
        return time.perf_counter() - start

    def waits(self) -> str | None:
        """Go on until each row began a page; return what torch says if the hook made the host wait for the GPU."""
        if not self._asked.is_gpu:
            return "not looked for: there is no GPU"
        torch.cuda.set_sync_debug_mode("error")
        try:
            for _ in range(self._asked.page_size):
                self.advance(with_tags=True)
        except RuntimeError as error:
            return str(error).partition("\n")[0]
        finally:
            torch.cuda.set_sync_debug_mode("default")
        return None


def _run(
    asked: Asked, step: Callable[[], None], rows: _Rows, steps: int, *, with_tags: bool
) -> tuple[float, list[float]]:
    """Return the seconds of some steps, and those of the host in the hook for each."""
    of_tags, before = [], None
    _wait(asked)
    start = time.perf_counter()
    for _ in range(steps):
        of_tags.append(rows.advance(with_tags=with_tags))
        step()
        if before is not None:
            before.synchronize()
        before = torch.cuda.Event() if asked.is_gpu else None
        if before is not None:
            before.record()
    _wait(asked)
    return time.perf_counter() - start, of_tags if with_tags else []


def _device_seconds(asked: Asked, rows: _Rows) -> float | None:
    """Return what a step's tags take of the device, from events around many of them; none without a GPU."""
    if not asked.is_gpu:
        return None
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(200_000_000)  # the host gets ahead, so that what is timed is the device and not the launching
    start.record()
    for _ in range(BLOCK):
        rows.advance(with_tags=True)
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) / 1000 / BLOCK


def _step(asked: Asked) -> tuple[Callable[[], None], int]:
    """Return a step that takes about the target, and of how many parts it is made."""
    part = _part(asked)
    part()
    _wait(asked)
    start = time.perf_counter()
    for _ in range(10):
        part()
    _wait(asked)
    parts = max(1, round(asked.target_ms / 1000 / ((time.perf_counter() - start) / 10)))

    def whole() -> None:
        for _ in range(parts):
            part()

    if not asked.is_gpu:
        return whole, parts
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        whole()
    return graph.replay, parts


def _part(asked: Asked) -> Callable[[], None]:
    """Return something like one layer: two matrix products, and attention over some KV."""
    hidden, heads, width, kept = (4096, 32, 128, 2048) if asked.is_gpu else (256, 4, 32, 64)
    dtype = torch.bfloat16 if asked.is_gpu else torch.float32
    make = partial(torch.randn, dtype=dtype, device=asked.device)
    state, up, down = make(asked.batch, hidden), make(hidden, 4 * hidden) * 0.01, make(4 * hidden, hidden) * 0.01
    query, cache = make(asked.batch * heads, 1, width), make(asked.batch * heads, kept, width)

    def run() -> None:
        torch.matmul(torch.matmul(state, up), down)
        weights = torch.softmax(torch.bmm(query, cache.transpose(1, 2)), -1)
        torch.bmm(weights, cache)

    return run


def _wait(asked: Asked) -> None:
    if asked.is_gpu:
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
