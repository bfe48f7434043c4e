from __future__ import annotations

from typing import Any

import pytest

from kvfence.domain.diagnosis.seen import EngineSeen, Product
from kvfence.domain.diagnosis.switches import CANARY_ASSERT, SWITCHES
from kvfence.domain.diagnosis.transfers import BACKEND, DEFERRED, DEFERRED_SECONDS, EARLY_SEND
from tests.unit.domain.diagnosis.scenes import decode, engine, found, prefill


def pair(**changes: Any) -> tuple[EngineSeen, EngineSeen]:
    return prefill(**changes), decode(**changes)


HICACHE = {"enable_hierarchical_cache": True}


@pytest.mark.parametrize(
    ("seen", "name"),
    [
        (pair(settings={BACKEND: "fake"}), "FakeTransferBackend"),
        ((prefill(), decode(environment={DEFERRED: "0"})), "DeferredReleaseOff"),
        ((prefill(), decode(environment={DEFERRED: "false"})), "DeferredReleaseOff"),
        ((prefill(), decode(environment={DEFERRED_SECONDS: "5"})), "DeferredReleaseTooShort"),
        (pair(settings={BACKEND: "own"}), "DeferredReleaseUnsupported"),
        (pair(version="0.5.21", settings={BACKEND: "mori"}), "DeferredReleaseUnsupported"),
        (pair(version="0.5.22", settings=HICACHE), "HiCacheOnPrefill"),
        (pair(settings={"disaggregation_decode_enable_radix_cache": True}), "DecodeRadixCache"),
        (pair(settings={"optimistic_prefill_attempts": 2}), "OptimisticPrefill"),
        (pair(environment={"SGLANG_DISAGG_STAGING_BUFFER": "1"}), "StagingBuffer"),
        (pair(settings={"speculative_algorithm": "EAGLE"}), "SpeculativeInPair"),
        ((engine(environment={"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "true"}),), "LongerContextForced"),
        ((engine(settings={"enable_lora": True}),), "LoraBesideClientKeys"),
        ((engine(settings={"lora_paths": ["a"]}),), "LoraBesideClientKeys"),
        ((engine(settings={"enable_cache_report": True}),), "CacheReportOn"),
        ((engine(environment={"SGLANG_ENABLE_POST_CAPTURE_KV_SIZING": "1"}),), "PoolSizedLate"),
        ((engine(settings={"kv_canary": "raise"}),), "KvCanaryKills"),
        ((engine(settings={"kv_canary": "log"}),), "KvCanaryBlind"),
        ((engine(settings={"enable_custom_logit_processor": True}),), "CustomLogitProcessor"),
        ((engine(settings={"encoder_only": True}),), "EncoderApart"),
        ((engine(environment={"SGLANG_ENABLE_REQUEST_HEADER_OVERRIDES": "1"}),), "HeadersOverrideBodies"),
        ((engine(environment={"SGLANG_TEST_DISAGG_KV_CHECKSUM_MISMATCH_PROB": "0.1"}),), "TestSwitchOn"),
        ((engine(environment={"SGLANG_IS_IN_CI": "1"}),), "TestSwitchOn"),
    ],
)
def test_a_dangerous_setting_is_found(seen: tuple[EngineSeen, ...], name: str) -> None:
    assert set(found(*seen)) - {"ChecksumNotReliable"} == {name}


@pytest.mark.parametrize(
    "seen",
    [
        (engine(settings={BACKEND: "fake"}),),  # without a partner nothing is transferred
        (prefill(environment={DEFERRED: "0"}), decode()),  # it is decode's memory
        (prefill(), decode(environment={DEFERRED: "1", DEFERRED_SECONDS: "30"})),
        (prefill(), decode(environment={DEFERRED_SECONDS: "soon"})),
        pair(settings={BACKEND: "mori"}),
        pair(settings={BACKEND: "nixl"}),
        pair(settings=HICACHE),
        pair(version=None, settings=HICACHE),
        (prefill(), decode(settings=HICACHE)),
        pair(settings={"optimistic_prefill_attempts": 0, "speculative_algorithm": None}),
        (engine(settings={"speculative_algorithm": "EAGLE"}),),
        (engine(settings={"kv_canary": "none", "lora_paths": None, "encoder_only": False}),),
        (engine(settings={"kv_canary": "log"}, environment={CANARY_ASSERT: "1"}),),
        (engine(environment={"SGLANG_IS_IN_CI": "false", "SGLANG_TEST_X": "0"}),),
        (engine(settings={"enable_cache_report": "yes"}),),  # no truth value: not told
    ],
)
def test_a_setting_that_does_no_harm_is_no_finding(seen: tuple[EngineSeen, ...]) -> None:
    assert found(*seen) == {}


def test_hicache_is_safe_where_nothing_is_sent_early() -> None:
    off = {"version": "0.5.22", "settings": HICACHE, "environment": {EARLY_SEND: "0"}}
    assert "HiCacheOnPrefill" not in found(prefill(**off), decode(**off))


def test_without_an_environment_nothing_is_said_of_variables() -> None:
    bare = EngineSeen("s", product=Product.SGLANG, settings={"kv_canary": "log"})
    assert found(bare) == {}


def test_settings_of_vllm_are_not_sglangs() -> None:
    assert found(engine(product=Product.VLLM, settings={"enable_cache_report": True, "max_total_tokens": 2**30})) == {}


def test_every_switch_has_an_id_of_its_own_and_a_cure() -> None:
    assert len({switch.id for switch in SWITCHES}) == len(SWITCHES)
    assert all(switch.fix for switch in SWITCHES)


def test_no_value_of_a_variable_is_quoted() -> None:
    message = found(engine(environment={"SGLANG_TEST_TOKEN": "PRIVATE"}))["TestSwitchOn"].message
    assert "PRIVATE" not in message
    assert "SGLANG_TEST_TOKEN" in message
