"""Rules about how KV comes from prefill to decode and when its memory is used again (R6, R7, R12, W1 and W2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.diagnosis.hits import UPGRADE, Hit
from kvfence.domain.severity import Severity
from kvfence.domain.versions import CHECKSUM_RELIABLE, OLDEST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvfence.domain.diagnosis.scene import Server

BACKEND = "disaggregation_transfer_backend"
DEFERRED = "SGLANG_DISAGGREGATION_DEFERRED_DECODE_KV_RELEASE"
DEFERRED_SECONDS = f"{DEFERRED}_TIMEOUT"
EARLY_SEND = "SGLANG_DISAGG_PREFILL_EARLY_SEND_CACHED_PREFIX"

LONGEST_TRANSFER_SECONDS = 30.0
"""After which Mooncake gives a transfer up."""
MORI_SINCE = Version("0.5.22")
_DEFERRING = frozenset({"mooncake", "nixl", "ascend"})
"""Backends under which decode keeps the memory of a request that was given up until nobody writes to it."""


def fake_backend(server: Server) -> Iterator[Hit]:
    """R6. The rest of that row is about the services in front, which nothing that is read here tells."""
    if server.in_pair and _backend(server) == "fake":
        text = "KV is not transferred at all: decode answers out of whatever its memory held before."
        fix = "Start both halves with: --disaggregation-transfer-backend mooncake"
        yield Hit("FakeTransferBackend", Severity.CRITICAL, server.source, text, fix)


def release_of_decode(server: Server) -> Iterator[Hit]:
    """R7: memory that is used again while a transfer may still write to it."""
    if server.role is not RoleType.DECODE:
        return
    reused = "memory of a request that was given up is used again while prefill may still write to it."
    if server.variable_on(DEFERRED) is False:
        text = f"{DEFERRED} is off: {reused}"
        yield Hit("DeferredReleaseOff", Severity.HIGH, server.source, text, f"unset {DEFERRED}")
    seconds = _seconds(server.environment.get(DEFERRED_SECONDS))
    if seconds is not None and seconds < LONGEST_TRANSFER_SECONDS and _backend(server) in (None, "mooncake"):
        text = f"{DEFERRED_SECONDS} is {seconds:g}, shorter than a transfer may take (30 s): {reused}"
        fix = f"unset {DEFERRED_SECONDS}"
        yield Hit("DeferredReleaseTooShort", Severity.HIGH, server.source, text, fix)
    backend, version = _backend(server), server.release
    if backend in (None, "fake") or version is None or version < OLDEST:
        return
    if backend not in _DEFERRING and not (backend == "mori" and version >= MORI_SINCE):
        text = f"this transfer backend does not tell when it is done with a request: {reused}"
        fix = "Start both halves with: --disaggregation-transfer-backend mooncake"
        yield Hit("DeferredReleaseUnsupported", Severity.HIGH, server.source, text, fix)


def hicache_on_prefill(server: Server) -> Iterator[Hit]:
    """R12."""
    if server.role is not RoleType.PREFILL or server.on("enable_hierarchical_cache") is not True:
        return
    if server.older_than(CHECKSUM_RELIABLE) and server.variable_on(EARLY_SEND) is not False:
        text = (
            f"prefill of SGLang {server.release} with --enable-hierarchical-cache may hand over pages that are still "
            "being restored, so that decode reads what was in them before."
        )
        fix = f"{UPGRADE}\nuntil then, on prefill: export {EARLY_SEND}=0"
        yield Hit("HiCacheOnPrefill", Severity.HIGH, server.source, text, fix)


def decode_radix_cache(server: Server) -> Iterator[Hit]:
    """W1."""
    if server.role is RoleType.DECODE and server.on("disaggregation_decode_enable_radix_cache") is True:
        text = "decode shares pages between requests, which is experimental; each page has one owner without it."
        fix = "Start decode without: --disaggregation-decode-enable-radix-cache"
        yield Hit("DecodeRadixCache", Severity.MEDIUM, server.source, text, fix)


def larger_state_space(server: Server) -> Iterator[Hit]:
    """W2: what multiplies the ways in which a hand-over goes on, and had faults of its own."""
    if not server.in_pair:
        return
    attempts = server.settings.get("optimistic_prefill_attempts")
    if type(attempts) is int and attempts > 0:
        text = "prefill computes before it knows that decode is there, and gives its work up when it is not."
        fix = "Start prefill without: --optimistic-prefill-attempts"
        yield Hit("OptimisticPrefill", Severity.MEDIUM, server.source, text, fix)
    if server.variable_on("SGLANG_DISAGG_STAGING_BUFFER"):
        text = "KV passes through a staging buffer, which had faults of its own."
        yield Hit("StagingBuffer", Severity.MEDIUM, server.source, text, "unset SGLANG_DISAGG_STAGING_BUFFER")
    speculative = server.settings.get("speculative_algorithm")
    if isinstance(speculative, str) and speculative.casefold() not in ("", "none", "null"):
        text = "drafts are decoded ahead in a pair; several faults that mixed up KV were in this combination."
        fix = "kvfence canary PREFILL_URL,DECODE_URL\nafter each change, or start it without: --speculative-algorithm"
        yield Hit("SpeculativeInPair", Severity.LOW, server.source, text, fix)


def _backend(server: Server) -> str | None:
    value = server.settings.get(BACKEND)
    return value.casefold() if isinstance(value, str) else None


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
