"""The `--mem-fraction-static` that SGLang takes when none is given.

`arg_groups/memory_hook.py` of 0.5.23 (0.5.19 has the same): it sets apart an amount of MiB that grows with the prefill
chunk, the largest batch of the captured graphs and the number of GPUs, and at least 10 GiB of a GPU above 60 GiB.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from kvfence.domain.estimate.model import Latent, Model
from kvfence.domain.estimate.ranges import Range

if TYPE_CHECKING:
    from kvfence.domain.estimate.layout import Layout

MIB = 1024.0
"""MiB in a GiB."""
LARGE = 60 * MIB
"""Above this a GPU keeps at least `LARGE_KEEPS` free."""
LARGE_KEEPS = 10 * MIB
TIERS: tuple[tuple[float, int, int, int], ...] = (
    (20 * MIB, 2048, 8, 8),
    (35 * MIB, 4096, 48, 160),
    (60 * MIB, 4096, 32, 160),
    (160 * MIB, 8192, 256, 512),
    (float("inf"), 16384, 512, 512),
)
"""Below so many MiB: tokens of a prefill chunk, and requests in a graph with fewer than four GPUs and with more."""
SMALLEST_CHUNK = 2048
GRAPHS_OF_LATENT = 1536.0
"""MiB for the prefill graphs of MLA; other models take 8 MiB for each graph, of which there are some fifty."""
GRAPHS = 50 * 8.0
OTHER_FLAGS = 1024.0
"""MiB: what one more default (an all-to-all backend, other graphs) sets apart; how much lower the range begins."""


class Role(StrEnum):
    """What an engine does: its default depends on it."""

    UNIFIED = "unified"
    PREFILL = "prefill"
    DECODE = "decode"


def default_fraction(model: Model, gpu_gib: float, layout: Layout, role: Role) -> Range[float]:
    """Return the fraction that SGLang takes by itself.

    Args:
        model: only whether it is MLA counts.
        gpu_gib: the GPU's memory, in GiB.
        layout: over how many GPUs it is spread.
        role: of the engine.
    """
    memory = gpu_gib * MIB
    _, chunk, few, many = next(tier for tier in TIERS if memory < tier[0])
    batch = few if layout.tp < 4 else many
    tokens = max(batch if role is Role.DECODE else chunk, SMALLEST_CHUNK)
    apart = 512.0 + tokens * 1.5 + layout.tp * layout.pp / 8 * MIB
    if role is not Role.PREFILL:
        apart += batch * 2
        if layout.dp_attention:
            apart += batch * layout.dp * (4.5 if batch > 300 else 3)
    graphs = 0.0 if role is Role.DECODE else (GRAPHS_OF_LATENT if isinstance(model.cache, Latent) else GRAPHS)
    return Range(_left(memory, apart + graphs + OTHER_FLAGS), _left(memory, apart + graphs), _left(memory, apart))


def _left(memory: float, apart: float) -> float:
    kept = max(apart, LARGE_KEEPS) if memory > LARGE else apart
    return max(0.0, round((memory - kept) / memory, 3))
