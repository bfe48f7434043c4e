"""With which of SGLang's settings the defences of the KV were not shown to hold; they are refused by name. Pure.

Each moves pages, or the bytes in them, past the places where the tags are kept, or changes what a finding leads to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_FLAGS = {
    "enable_hierarchical_cache": "pages come back from the host's memory without tags",
    "enable_lmcache": "pages come from a store outside of the engine without tags",
    "enable_flexkv": "pages come from a store outside of the engine without tags",
    "enable_unified_memory": "page ids are not those of the memory",
    "enable_hisparse": "decode reads pages in the host's memory",
    "enable_kv_cache_sharding": "a page lies in several ranks",
    "enable_memory_saver": "the memory of the pool can be given back and taken anew",
    "enable_streaming_session": "a session keeps the pages of a request that has ended",
    "enable_session_radix_cache": "a session keeps the pages of a request that has ended",
    "disaggregation_decode_enable_radix_cache": "decode's pages are shared, and transfers leave out what it has",
    "disaggregation_decode_enable_offload_kvcache": "pages come back from the host's memory without tags",
    "prefill_only_disable_kv_cache": "there is no KV pool",
    "enable_lora": "an adapter that is loaded later has another id on each role",
    "lora_paths": "an adapter that is loaded later has another id on each role",
    "speculative_algorithm": "decode steps get pages that are not tagged yet",
    "dllm_algorithm": "decode steps get pages that are not tagged yet",
}
"""Flags that must not be set, by their names in Python, and why."""

_AT_MOST_ONE = {
    "attn_dcp_size": "a page lies in several ranks",
    "dcp_size": "a page lies in several ranks",
    "attn_cp_size": "a prompt is computed by several ranks, each with its own part",
    "pp_size": "each stage would find faults on its own, and the others go on",
}

_SETTINGS = {
    "SGLANG_DISAGG_STAGING_BUFFER": "prefill sends from another place than its pages",
    "SGLANG_ENABLE_POST_CAPTURE_KV_SIZING": "the pool gets its size after the tags",
    "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "positions go past what the model has",
}
_PREFIXES = ("SGLANG_TEST_", "SGLANG_KV_CANARY_PERTURB_")
_UNSET = ("", "0", "false", "no", "off", "n", "f")
_DEFERRED = "SGLANG_DISAGGREGATION_DEFERRED_DECODE_KV_RELEASE"


def refuse(flags: Mapping[str, object], environment: Mapping[str, str]) -> str | None:
    """Return why an engine with defences of the KV on does not start; none when it does.

    Args:
        flags: SGLang's arguments by their names in Python.
        environment: of the engine.
    """
    return _flags(flags) or _environment(environment)


def _flags(flags: Mapping[str, object]) -> str | None:
    for name, why in _FLAGS.items():
        if flags.get(name) not in (None, False, "", [], {}):
            return f"drop --{name.replace('_', '-')}, or switch the defences of the KV off: {why}"
    for name, why in _AT_MOST_ONE.items():
        if flags.get(name) not in (None, 1):
            return f"set --{name.replace('_', '-')} to 1, or switch the defences of the KV off: {why}"
    if flags.get("disaggregation_decode_host_receive_threshold", 1) != 1:
        return "drop --disaggregation-decode-host-receive-threshold: what comes into the host's memory has no tags"
    if flags.get("disaggregation_transfer_backend") == "fake":
        return "choose another --disaggregation-transfer-backend: with fake no KV is ever transferred"
    return None


def _environment(environment: Mapping[str, str]) -> str | None:
    for name, value in environment.items():
        if value.lower() in _UNSET:
            continue
        if name.startswith(_PREFIXES):
            return f"unset {name}: it makes faults on purpose"
        if name in _SETTINGS:
            return f"unset {name}, or switch the defences of the KV off: {_SETTINGS[name]}"
    if environment.get(_DEFERRED, "1").lower() in _UNSET:
        return f"unset {_DEFERRED}: without it pages are used again while a transfer still writes into them"
    return None
