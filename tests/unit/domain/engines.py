"""KV pools as SGLang would report them, for the tests of what is decided from them."""

from __future__ import annotations

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.capacity import Measured, PoolId, Unmeasured

UNBOUNDED = 2**40


def pool(
    kind: RoleType,
    tokens: int,
    *,
    page: int = 1,
    pod: str = "0",
    rank: int = 0,
    context: int = UNBOUNDED,
    kept: int = 512,
) -> Measured:
    """A pool of an engine started with `--context-length context`; its limit as SGLang works it out."""
    role = kind.value.lower()
    return Measured(
        where=PoolId(role, f"{role}-{pod}", rank),
        type=kind,
        kv_pool_tokens=tokens,
        page_size=page,
        max_input_tokens=max(0, min(context - 1, tokens - 1) - 5),
        reserved_decode_tokens=kept if kind is RoleType.DECODE else 0,
    )


def prefill(tokens: int, *, page: int = 1, pod: str = "0", rank: int = 0, context: int = UNBOUNDED) -> Measured:
    """A pool of a prefill engine."""
    return pool(RoleType.PREFILL, tokens, page=page, pod=pod, rank=rank, context=context)


def decode(
    tokens: int, *, page: int = 1, pod: str = "0", rank: int = 0, context: int = UNBOUNDED, kept: int = 512
) -> Measured:
    """A pool of a decode engine that keeps `kept` tokens for requests under way."""
    return pool(RoleType.DECODE, tokens, page=page, pod=pod, rank=rank, context=context, kept=kept)


def unknown(kind: RoleType = RoleType.DECODE, pod: str = "9", why: str = "its door does not answer") -> Unmeasured:
    """A pool that is there and not known."""
    role = kind.value.lower()
    return Unmeasured(PoolId(role, f"{role}-{pod}"), kind, why)
