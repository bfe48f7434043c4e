"""SGLang's own rule for the size of its KV pool, with each figure that is not known as a range.

`KVCacheConfigurator._profile_available_bytes` and `DefaultPoolConfigurator`, 0.5.21 to 0.5.23, unchanged in this since
0.4: what is free after the weights are loaded, less the part of what was free before that is not static, goes to the
pool; its bytes are divided by those of one token, and rounded down to whole pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvfence.domain.capacity import floor_page
from kvfence.domain.estimate.facts import CannotEstimateError
from kvfence.domain.estimate.fraction import Role, default_fraction
from kvfence.domain.estimate.layout import CacheType, Flags, Layout
from kvfence.domain.estimate.model import GroupedHeads, Model
from kvfence.domain.estimate.ranges import Range
from kvfence.domain.estimate.weights import GIB, weights_of_rank

if TYPE_CHECKING:
    from kvfence.domain.estimate.gpus import Gpu

ONE_BYTE = {CacheType.FP8_E4M3, CacheType.FP8_E5M2}
WINDOWED = 0.8
"""`--swa-full-tokens-ratio` unless it is given: tokens of the windowed layers' pool for each of the full layers'."""
TAKEN = Range(0.1, 0.45, 1.0)
"""GiB that are gone before the weights are loaded, on one GPU: CUDA's context, libraries. Log 013 shows some 0.4.
The low end is lower, since another card of the same name may have a little more memory than the one in the table."""
TAKEN_PER_PEER = Range(0.0, 0.15, 0.3)
"""GiB more for each further GPU that it talks to. Eight have 1.6 gone in log 028, four 0.4 in log 002."""
TAKEN_BY_ROCM = Range(1.0, 8.0, 10.0)
"""GiB that are gone on each of several AMD GPUs. Two MI355X have 8.7 gone in log 020, a single one 0.7 in log 041."""
PEERS = 7
"""More do not count: those of another node are reached through the same buffers."""


@dataclass(frozen=True, slots=True)
class Reckoning:
    """How a pool was estimated. In GiB on the fullest GPU, in bytes on one rank, in tokens of one pool."""

    free: Range[float]
    """Before the weights are loaded."""
    weights: Range[float]
    fraction: Range[float]
    token_bytes: Range[int]
    pool: Range[int]
    """0 where the weights leave nothing: then SGLang does not start."""


def token_bytes(model: Model, layout: Layout, cache_type: CacheType) -> Range[int]:
    """Return what one token takes on one rank, in bytes; high is the most bytes.

    Raises:
        CannotEstimateError: it cannot be told, or SGLang does not split this model so.
    """
    if cache_type is CacheType.AUTO and not model.cache_type_known:
        raise CannotEstimateError(
            f"No estimate: the checkpoint, quantised by {model.quantisation}, may bring an FP8 cache along. "
            "Give --kv-cache-dtype."
        )
    _splits(model, layout)
    element = 1 if cache_type in ONE_BYTE else 2
    one = model.cache.elements(layout.attention_ranks) * element
    full, sliding = -(-model.layers // layout.pp), -(-model.sliding_layers // layout.pp)
    return Range(one * full, one * full + round(WINDOWED * one * sliding), one * (full + sliding))


def tokens_in(gib: float, bytes_of_token: int, flags: Flags) -> int:
    """Return how many tokens fit: SGLang divides, rounds down to whole pages, and keeps to the bound that is given."""
    tokens = max(0, int(gib * GIB)) // bytes_of_token
    if flags.max_total_tokens is not None:
        tokens = min(tokens, flags.max_total_tokens)
    return floor_page(tokens, flags.page_size)


def reckon(model: Model, gpu: Gpu, layout: Layout, flags: Flags, role: Role) -> Reckoning:
    """Estimate one pool.

    Args:
        model: what is served.
        gpu: of which kind each GPU is.
        layout: over how many it is spread.
        flags: what else the server is started with.
        role: what the engine does, on which the default fraction depends.

    Raises:
        CannotEstimateError: something that counts cannot be told.
    """
    free = free_before(gpu, layout)
    weights = weights_of_rank(model, layout, flags)
    given = flags.mem_fraction_static
    fraction = default_fraction(model, gpu.gib, layout, role) if given is None else Range.exactly(given)
    token = token_bytes(model, layout, flags.cache_type)
    pool = Range(
        tokens_in(left_for_pool(free.low, weights.high, fraction.low), token.high, flags),
        tokens_in(left_for_pool(free.likely, weights.likely, fraction.likely), token.likely, flags),
        tokens_in(left_for_pool(free.high, weights.low, fraction.high), token.low, flags),
    )
    return Reckoning(free, weights, fraction, token, pool)


def free_before(gpu: Gpu, layout: Layout) -> Range[float]:
    """Return the GiB of a GPU that are free when a server begins to load its weights."""
    peers = min(layout.together - 1, PEERS)
    taken = TAKEN_BY_ROCM
    if not (gpu.rocm and peers):
        taken = Range(
            TAKEN.low + peers * TAKEN_PER_PEER.low,
            TAKEN.likely + peers * TAKEN_PER_PEER.likely,
            TAKEN.high + peers * TAKEN_PER_PEER.high,
        )
    return Range(*(max(0.0, gpu.gib - gone) for gone in (taken.high, taken.likely, taken.low)))


def left_for_pool(free: float, weights: float, fraction: float) -> float:
    """Return what is left for the pool: `free after - free before x (1 - fraction)`, all in GiB."""
    return (free - weights) - free * (1 - fraction)


def _splits(model: Model, layout: Layout) -> None:
    ranks = layout.attention_ranks
    if model.cache.heads % ranks:
        raise CannotEstimateError(
            f"No estimate: {model.cache.heads} attention heads cannot be split over {ranks} GPUs."
        )
    if isinstance(model.cache, GroupedHeads):
        few, many = sorted((model.cache.kv_heads, ranks))
        if many % few:
            raise CannotEstimateError(
                f"No estimate: {model.cache.kv_heads} KV heads cannot be spread over {ranks} GPUs."
            )
    if layout.pp > model.layers + model.sliding_layers:
        raise CannotEstimateError(f"No estimate: --pp {layout.pp} is more than the model has layers.")
