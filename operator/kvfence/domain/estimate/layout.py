"""What a server is started with, as far as it moves the size of its KV pool."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kvfence.domain.estimate.facts import CannotEstimateError


class CacheType(StrEnum):
    """`--kv-cache-dtype`, as far as one token's size under it is known."""

    AUTO = "auto"
    BF16 = "bf16"
    BFLOAT16 = "bfloat16"
    FP8_E4M3 = "fp8_e4m3"
    FP8_E5M2 = "fp8_e5m2"


@dataclass(frozen=True, slots=True)
class Layout:
    """How a model is spread over GPUs.

    Raises:
        CannotEstimateError: SGLang does not start so.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    dp_attention: bool = False
    """`--enable-dp-attention`: the ranks of `dp` are then among those of `tp`, and each has a pool of its own."""

    def __post_init__(self) -> None:
        """Refuse what SGLang refuses."""
        if min(self.tp, self.pp, self.dp) < 1:
            raise ValueError("tp, pp and dp are at least 1")
        if self.dp_attention and self.tp % self.dp:
            raise CannotEstimateError(f"--enable-dp-attention needs a --tp ({self.tp}) that --dp ({self.dp}) divides")

    @property
    def attention_ranks(self) -> int:
        """Over how many GPUs the attention, and with it the KV of one token, is split."""
        return self.tp // self.dp if self.dp_attention else self.tp

    @property
    def together(self) -> int:
        """GPUs whose ranks agree on one pool size, the least of theirs."""
        return self.tp * self.pp

    @property
    def gpus(self) -> int:
        """GPUs in all; without DP attention each of the `dp` replicas has its own."""
        return self.together if self.dp_attention else self.together * self.dp


@dataclass(frozen=True, slots=True)
class Flags:
    """Further flags; `None` is a flag that is not given.

    Raises:
        ValueError: a value that cannot be.
    """

    cache_type: CacheType = CacheType.AUTO
    mem_fraction_static: float | None = None
    page_size: int = 1
    """Tokens of a page. SGLang's own choice is 1, and more with some attention backends, which floors the pool."""
    max_total_tokens: int | None = None
    """An upper bound of the pool, not a promise."""
    weights_gib: float | None = None
    """The whole model's weights in GiB; counted from the config where it is not given."""

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if self.mem_fraction_static is not None and not 0 < self.mem_fraction_static < 1:
            raise ValueError("--mem-fraction-static is between 0 and 1")
        if self.page_size < 1 or (self.max_total_tokens is not None and self.max_total_tokens < 1):
            raise ValueError("--page-size and --max-total-tokens are at least 1")
        if self.weights_gib is not None and not 0 < self.weights_gib < 1_000_000:
            raise ValueError("--weights-gib is above 0 and below 1,000,000")
