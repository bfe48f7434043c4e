"""Settings of SGLang with which the defences of the KV were not shown to hold are refused by name."""

from __future__ import annotations

import pytest

from kvfence_engine.integrity import refusals

PLAIN: dict[str, object] = {
    "enable_hierarchical_cache": False,
    "enable_lmcache": False,
    "speculative_algorithm": None,
    "dllm_algorithm": None,
    "lora_paths": [],
    "pp_size": 1,
    "disaggregation_decode_host_receive_threshold": 1.0,
    "dcp_size": 1,
    "attn_dcp_size": 1,
    "attn_cp_size": 1,
    "disaggregation_transfer_backend": "mooncake",
    "disaggregation_decode_enable_radix_cache": False,
}


def test_an_engine_as_the_operator_starts_it_is_not_refused() -> None:
    assert (
        refusals.refuse(PLAIN, {"PATH": "/bin", "SGLANG_TEST_NOTHING": "", "SGLANG_DISAGG_STAGING_BUFFER": "0"}) is None
    )


@pytest.mark.parametrize(
    "flag",
    [
        *("enable_hierarchical_cache", "enable_lmcache", "enable_flexkv", "enable_unified_memory", "enable_hisparse"),
        *("enable_kv_cache_sharding", "enable_memory_saver", "enable_streaming_session", "enable_session_radix_cache"),
        *("disaggregation_decode_enable_radix_cache", "disaggregation_decode_enable_offload_kvcache"),
        *("prefill_only_disable_kv_cache", "enable_lora"),
    ],
)
def test_what_moves_pages_past_the_tags_is_refused_by_name(flag: str) -> None:
    said = refusals.refuse({**PLAIN, flag: True}, {})
    assert said is not None
    assert said.startswith(f"drop --{flag.replace('_', '-')}, or switch the defences of the KV off: ")


@pytest.mark.parametrize("flag", ["speculative_algorithm", "dllm_algorithm"])
def test_decode_steps_of_another_kind_are_refused(flag: str) -> None:
    assert f"drop --{flag.replace('_', '-')}" in str(refusals.refuse({**PLAIN, flag: "EAGLE"}, {}))


@pytest.mark.parametrize("flag", ["dcp_size", "attn_dcp_size", "attn_cp_size", "pp_size"])
def test_prompts_in_several_parts_are_refused(flag: str) -> None:
    assert f"set --{flag.replace('_', '-')} to 1" in str(refusals.refuse({**PLAIN, flag: 2}, {}))


def test_transfers_into_the_hosts_memory_are_refused() -> None:
    said = refusals.refuse({**PLAIN, "disaggregation_decode_host_receive_threshold": 0.5}, {})
    assert "what comes into the host's memory has no tags" in str(said)


def test_transfers_that_never_happen_are_refused() -> None:
    assert "no KV is ever transferred" in str(refusals.refuse({**PLAIN, "disaggregation_transfer_backend": "fake"}, {}))


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("SGLANG_TEST_DISAGG_KV_CHECKSUM_MISMATCH_PROB", "0.5", "it makes faults on purpose"),
        ("SGLANG_KV_CANARY_PERTURB_X", "1", "it makes faults on purpose"),
        ("SGLANG_DISAGG_STAGING_BUFFER", "true", "another place than its pages"),
        ("SGLANG_ENABLE_POST_CAPTURE_KV_SIZING", "1", "its size after the tags"),
        ("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", "1", "past what the model has"),
        ("SGLANG_DISAGGREGATION_DEFERRED_DECODE_KV_RELEASE", "0", "used again while a transfer still writes"),
        ("SGLANG_DISAGGREGATION_DEFERRED_DECODE_KV_RELEASE", "False", "used again while a transfer still writes"),
    ],
)
def test_variables_that_make_faults_or_take_a_net_away_are_refused(name: str, value: str, says: str) -> None:
    said = refusals.refuse(PLAIN, {name: value})
    assert said is not None
    assert said.startswith(f"unset {name}")
    assert says in said


def test_the_deferred_release_may_be_asked_for_in_words() -> None:
    assert refusals.refuse(PLAIN, {"SGLANG_DISAGGREGATION_DEFERRED_DECODE_KV_RELEASE": "1"}) is None
