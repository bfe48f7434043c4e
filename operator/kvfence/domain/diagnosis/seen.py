"""What a source tells of an engine or a router. None stands for what it does not tell: a guess would be a defect."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.capacity import INPUT_MARGIN, floor_page

if TYPE_CHECKING:
    from collections.abc import Mapping

NOTHING: Mapping[str, Any] = MappingProxyType({})


class Product(StrEnum):
    """Who made what was seen; the names as their projects write them, and as packages are called in advisories."""

    SGLANG = "sglang"
    VLLM = "vllm"
    SMG = "smg"
    SGLANG_ROUTER = "sglang-router"


@dataclass(frozen=True, slots=True)
class EngineSeen:
    """One scheduler whose KV pool is its own: one per data-parallel rank, one per half of a pair."""

    source: str
    """What the user named, and what tells the engine apart in it: `pair.log (prefill)`."""
    rank: int | None = None
    """Of data parallelism."""
    product: Product | None = None
    version: str | None = None
    started: bool | None = None
    """False where the source ends in a failed start."""
    role: RoleType | None = None
    """Unified for a server that says that it has no partner."""
    kv_pool_tokens: int | None = None
    """What one request can use at most, in tokens."""
    context_length: int | None = None
    """What is advertised, in tokens."""
    told_input_limit: int | None = None
    """`max_req_input_len` as the engine told it: prompts must be shorter."""
    page_size: int | None = None
    reserved_decode_tokens: int | None = None
    settings: Mapping[str, Any] = field(default_factory=lambda: NOTHING, repr=False)
    """The server's own settings by SGLang's names (`allow_auto_truncate`), as far as told; no key material."""
    environment: Mapping[str, str] = field(default_factory=lambda: NOTHING, repr=False)
    """Variables of the engine's process, where the source has them: a pod's spec."""
    keys_shown: tuple[str, ...] = ()
    """Names of settings whose secret values stood in clear in what was read."""
    notes: tuple[str, ...] = ()
    """Why something is not known or contradicts itself, each one sentence for people."""
    ranks_untold: int = 0
    """How many more ranks of data parallelism the server has, with pools of their own of which nothing is told."""
    answered: bool = False
    """Whether a server answered this, which tells its version there; a log never does."""
    pair: str | None = None
    """Which pair it was named in, where somebody named one; the same text for its other half."""

    @property
    def max_input_tokens(self) -> int | None:
        """Prompts must be shorter than this: as the engine told it, else from pool and context.

        Source of the formula: `TpModelWorker.get_worker_info` of SGLang; see `kvfence.domain.capacity`.
        """
        if self.started is False:
            return None
        if self.told_input_limit is not None:
            return self.told_input_limit
        if self.kv_pool_tokens is None or self.context_length is None or self.product is not Product.SGLANG:
            return None
        return max(0, min(self.kv_pool_tokens, self.context_length) - INPUT_MARGIN)

    @property
    def context_fits(self) -> bool | None:
        """Whether the pool holds all of the advertised context; none when one of the two is not told."""
        if self.kv_pool_tokens is None or self.context_length is None or self.started is False:
            return None
        return self.kv_pool_tokens >= self.context_length

    @property
    def advertisable_context(self) -> int | None:
        """The most context that this engine could offer if it were alone, without headroom, in tokens."""
        if self.kv_pool_tokens is None or self.context_length is None or self.started is False:
            return None
        most = min(self._usable(self.kv_pool_tokens), self.context_length)
        return most if self.told_input_limit is None else min(most, self.told_input_limit + INPUT_MARGIN)

    @property
    def keeps_back(self) -> bool | None:
        """Whether a part of its pool is kept back from each request, as decode does; none when not told how much."""
        if self.role is not RoleType.DECODE:
            return False
        return None if self.page_size is None or self.reserved_decode_tokens is None else True

    def _usable(self, pool: int) -> int:
        """A decode engine keeps tokens back and takes whole pages; where it does not tell how many, its pool counts."""
        if self.page_size is None or self.reserved_decode_tokens is None or not self.keeps_back:
            return pool
        return floor_page(pool - self.reserved_decode_tokens - self.page_size, self.page_size)


@dataclass(frozen=True, slots=True)
class RouterSeen:
    """A router in front of engines."""

    source: str
    product: Product | None = None
    version: str | None = None
    control_plane_open: bool | None = None
    """Whether anybody who reaches it may list, and so enrol, workers; never tried by enrolling one."""
    server_info_open: bool | None = None
    """Whether it hands an engine's whole `/server_info` to anybody."""
    workers: tuple[str, ...] = ()
    """Addresses of its workers, as it lists them."""
    workers_unread: int = 0
    """Workers in its list whose address is none that we can read, or that were too many."""
    keys_shown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A source that tells nothing."""

    source: str
    why: str
    """One sentence for people, with what to do."""


Seen = EngineSeen | RouterSeen | Unreadable
