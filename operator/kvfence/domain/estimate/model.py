"""What of a model moves the size of its KV pool: what one token leaves in the cache, and what its weights take."""

from __future__ import annotations

from dataclasses import dataclass

BF16 = 2.0
"""Bytes of a weight and of an element of the cache. SGLang loads float32 as float16, which has two as well."""


@dataclass(frozen=True, slots=True)
class GroupedHeads:
    """A key and a value for each KV head: multi-head, grouped-query and multi-query attention."""

    heads: int
    kv_heads: int
    head_dim: int

    def elements(self, ranks: int) -> int:
        """Return the numbers that one token leaves in one layer, on each rank.

        `ModelConfig.get_num_kv_heads`: with more ranks than KV heads each rank keeps one whole head.
        """
        return max(1, self.kv_heads // ranks) * self.head_dim * 2


@dataclass(frozen=True, slots=True)
class Latent:
    """One compressed vector for all heads: multi-head latent attention. It is not split: each rank has all of it."""

    heads: int
    width: int
    """`kv_lora_rank + qk_rope_head_dim`."""

    def elements(self, ranks: int) -> int:  # noqa: ARG002 - as with GroupedHeads
        """Return the numbers that one token leaves in one layer, on each rank."""
        return self.width


@dataclass(frozen=True, slots=True)
class Parameters:
    """Numbers of parameters, by how tensor parallelism splits them. Attention and experts may be quantised."""

    embedding: int
    head: int
    """Of the output; 0 when it is tied to the embedding."""
    attention: int
    """Split over the ranks of attention."""
    keys_values: int
    """The projections onto keys and values: split as far as there are KV heads."""
    experts: int
    """Feed-forward layers, split over all ranks."""
    low_rank: int
    """Projections that every rank of attention has whole, and that are quantised like the others."""
    whole: int
    """Norms, biases and gates: on every rank, never quantised."""

    @property
    def total(self) -> int:
        """All of them."""
        sides = self.embedding + self.head + self.whole
        return sides + self.attention + self.keys_values + self.experts + self.low_rank


@dataclass(frozen=True, slots=True)
class Widths:
    """Bytes that one weight takes in memory, scales included."""

    attention: float = BF16
    experts: float = BF16


@dataclass(frozen=True, slots=True)
class Model:
    """One model."""

    name: str
    architecture: str
    layers: int
    """Of which each token is kept, from the first to the last."""
    sliding_layers: int
    """Of which only a window is kept, where SGLang has a second pool for them."""
    cache: GroupedHeads | Latent
    parameters: Parameters
    widths: Widths | None
    """`None` when the config does not tell how large quantised weights are."""
    quantisation: str | None
    """Its name in the config."""
    absorbed: int
    """Parameters that SGLang keeps a second time in BF16 beside the quantised ones (MLA's `kv_b_proj`)."""
    cache_type_known: bool
    """Whether `--kv-cache-dtype auto` surely means two bytes."""
    context: int
    """What the model itself has, in tokens (`max_position_embeddings`)."""
