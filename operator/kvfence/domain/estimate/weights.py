"""How much of one GPU's memory the weights take, on the rank that has the most of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.domain.estimate.facts import CannotEstimateError
from kvfence.domain.estimate.model import BF16, GroupedHeads, Model, Widths
from kvfence.domain.estimate.ranges import Range

if TYPE_CHECKING:
    from kvfence.domain.estimate.layout import Flags, Layout

GIB = 1024.0**3
LIKELY_BESIDE = 0.1
"""GiB beside the weights after loading: rotary tables, buffers. Field logs 001 and 027 show 0.06 and 0.07, 002 0.28."""
LOW_BESIDE = 0.5
"""GiB that may be beside them at worst."""
LOW_SHARE = 0.05
"""Part of the weights that may be there twice, or be larger in memory than in the checkpoint, at worst. Set with the
logs 004 and 025 in view, whose pools are 8 and 6 % below what the parameters alone leave."""


def weights_of_rank(model: Model, layout: Layout, flags: Flags) -> Range[float]:
    """Return the GiB of weights on the fullest GPU; the low end is the most memory, which makes the smallest pool.

    Raises:
        CannotEstimateError: the config does not tell how large quantised weights are, and nobody else did.
    """
    if model.widths is None and flags.weights_gib is None:
        raise CannotEstimateError(
            f"No estimate: the weights are quantised by {model.quantisation}, and config.json does not tell how large "
            "they are. Give --weights-gib, the size of all .safetensors files together."
        )
    widths = model.widths or Widths()
    counted = _rank(model, layout, widths)
    if flags.weights_gib is not None:  # spread as the parameters are
        counted *= flags.weights_gib * GIB / whole_model(model, widths)
    gib = (counted + model.absorbed * BF16 / layout.attention_ranks / layout.pp) / GIB
    return Range(gib, gib + LIKELY_BESIDE, gib * (1 + LOW_SHARE) + LOW_BESIDE)


def whole_model(model: Model, widths: Widths) -> float:
    """Return the bytes of all weights together."""
    counts = model.parameters
    attention = counts.attention + counts.keys_values + counts.low_rank
    rest = counts.embedding + counts.head + counts.whole
    return attention * widths.attention + counts.experts * widths.experts + rest * BF16


def _rank(model: Model, layout: Layout, widths: Widths) -> float:
    """Return the bytes on the fullest rank.

    The stage of a pipeline with the most layers, and with one of the two ends: the larger one, since SGLang gives the
    layers that are left over to stages in the middle or at the end.
    """
    counts, ranks = model.parameters, layout.attention_ranks
    layers = model.layers + model.sliding_layers
    share = -(-layers // layout.pp) / layers
    pairs = counts.keys_values / ranks
    if isinstance(model.cache, GroupedHeads) and ranks > model.cache.kv_heads:
        pairs = counts.keys_values / model.cache.kv_heads
    blocks = (
        (counts.attention / ranks + pairs + counts.low_rank) * widths.attention
        + counts.experts / layout.tp * widths.experts
        + counts.whole * BF16
    )
    head = counts.head / layout.tp
    ends = counts.embedding / ranks + head if layout.pp == 1 else max(counts.embedding / ranks, head)
    return blocks * share + ends * BF16
