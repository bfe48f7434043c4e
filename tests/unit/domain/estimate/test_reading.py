"""A model is read from its config.json, or refused with the reason; never taken for another one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvfence.domain.estimate import KNOWN, CannotEstimateError, ConfigError, Model, known_model, model_from
from kvfence.domain.estimate.gpus import ALIASES, GPUS, gpu_named
from kvfence.domain.estimate.known import names_near
from kvfence.domain.estimate.model import BF16, GroupedHeads, Latent, Widths

PUBLISHED = {
    "meta-llama/Llama-3.1-8B-Instruct": 8_030_261_248,
    "meta-llama/Llama-3.1-70B-Instruct": 70_553_706_496,
    "meta-llama/Llama-3.3-70B-Instruct": 70_553_706_496,
    "mistralai/Mistral-7B-Instruct-v0.1": 7_241_732_096,
    "Qwen/QwQ-32B": 32_763_876_352,
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B": 32_763_876_352,
    "Qwen/Qwen3-4B": 4_022_468_096,
    "Qwen/Qwen3-235B-A22B": 235_093_634_560,
    "Qwen/Qwen3-235B-A22B-FP8": 235_093_634_560,
}
"""Numbers of parameters, as the hub shows them for the published weights."""
ROUNDED = {
    "deepseek-ai/DeepSeek-V3": (671e9, 0.1e9),
    "deepseek-ai/DeepSeek-R1": (671e9, 0.1e9),
    "deepseek-ai/DeepSeek-R1-0528": (671e9, 0.1e9),
    "openai/gpt-oss-20b": (20.9e9, 0.05e9),
    "openai/gpt-oss-120b": (116.8e9, 0.05e9),
}
"""As their publishers say them, without the layers for multi-token prediction, which SGLang does not load by itself."""


def config(name: str = "Qwen/QwQ-32B", **changed: Any) -> dict[str, Any]:
    return {**KNOWN[name], **changed}


def known(name: str) -> Model:
    found = known_model(name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", KNOWN)
def test_the_parameters_counted_are_those_that_were_published(name: str) -> None:
    total = known(name).parameters.total
    if name in PUBLISHED:
        assert total == PUBLISHED[name]
    else:
        said, rounding = ROUNDED[name]
        assert abs(total - said) <= rounding


def test_a_model_is_found_by_its_name_in_any_case_and_without_its_owner() -> None:
    assert known("deepseek-r1").name == known("Deepseek-AI/DeepSeek-R1").name == "deepseek-ai/DeepSeek-R1"
    assert known_model("deepseek-r1-zero") is None
    assert "deepseek-ai/DeepSeek-R1" in names_near("DeepSeek-R1x")
    assert names_near("") == ()


def test_what_a_token_leaves_is_read_from_the_right_keys() -> None:
    assert known("Qwen3-235B-A22B").cache == GroupedHeads(64, 4, 128)
    assert known("DeepSeek-V3").cache == Latent(128, 576)
    oss = known("gpt-oss-120b")
    assert (oss.layers, oss.sliding_layers) == (18, 18)


def test_a_sliding_window_of_a_model_whose_layers_sglang_keeps_whole_does_not_make_its_cache_smaller() -> None:
    windowed = model_from(config(sliding_window=4096, layer_types=["sliding_attention"] * 64), "windowed")
    assert (windowed.layers, windowed.sliding_layers) == (64, 0)


OTHER: dict[str, Any] = {
    "architectures": ["Qwen3NextForCausalLM"],
    "index_topk": 2048,
    "index_head_dim": 128,
    "compress_ratios": [1, 4],
    "linear_attn_config": {"kda_layers": [1]},
    "linear_num_value_heads": 32,
    "full_attention_interval": 4,
    "mamba_d_state": 128,
    "mamba_d_conv": 4,
    "ssm_state_size": 128,
    "hybrid_override_pattern": "M-M*",
    "layers_block_type": ["mamba"],
    "block_configs": [{}],
    "swa_num_key_value_heads": 4,
    "vision_config": {"depth": 1},
    "text_config": {"hidden_size": 1},
    "layer_types": ["linear_attention"] * 64,
}


@pytest.mark.parametrize("key", OTHER)
def test_another_cache_than_those_modelled_is_refused_and_not_guessed(key: str) -> None:
    with pytest.raises(CannotEstimateError, match=r"^No estimate for .*\. Start it and measure: `kvfence doctor`"):
        model_from(config(**{key: OTHER[key]}), "other")


@pytest.mark.parametrize(
    "architecture",
    [
        "DeepseekV32ForCausalLM",
        "DeepseekV4ForCausalLM",
        "GlmMoeDsaForCausalLM",
        "Qwen3_5ForConditionalGeneration",
        "Qwen4ExpForConditionalGeneration",
        "BailingMoeV3ForCausalLM",
        "EmbeddingGemmaModel",
        "MiMoV2FlashForCausalLM",
        "Gemma4ForCausalLM",
        "LlamaForCausalLM2",
    ],
)
def test_an_architecture_that_is_not_on_the_list_is_refused(architecture: str) -> None:
    """Those of the field logs that have another cache, by the names that they log, and one that nobody knows."""
    with pytest.raises(CannotEstimateError, match=architecture):
        model_from(config(architectures=[architecture]), "other")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"num_hidden_layers": None}, "does not say num_hidden_layers"),
        ({"num_hidden_layers": 0}, "no whole number"),
        ({"num_hidden_layers": -1}, "no whole number"),
        ({"num_hidden_layers": True}, "no whole number"),
        ({"num_hidden_layers": 64.0}, "no whole number"),
        ({"num_hidden_layers": "64"}, "no whole number"),
        ({"num_hidden_layers": 10**400}, "no whole number"),
        ({"num_key_value_heads": 41}, "contradict"),
        ({"num_key_value_heads": 7}, "contradict"),
        ({"num_key_value_heads": [8] * 64}, "no whole number"),
        ({"architectures": []}, "one architecture"),
        ({"architectures": None}, "one architecture"),
        ({"architectures": "Qwen2ForCausalLM"}, "no list"),
        ({"architectures": ["LlamaForCausalLM", "Qwen2ForCausalLM"]}, "one architecture"),
        ({"layer_types": ["full_attention"]}, "one entry for each layer"),
        ({"tie_word_embeddings": "no"}, "neither true nor false"),
        ({"quantization_config": "fp8"}, "no object"),
        ({"quantization_config": {"quant_method": 8}}, "no text"),
        ({"max_position_embeddings": float("nan")}, "no whole number"),
    ],
)
def test_a_config_that_cannot_be_right_is_refused_in_words(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        model_from(config(**changed), "wrong")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)  # the machine may be busy
@given(st.sampled_from(sorted(KNOWN)), st.data())
def test_whatever_a_config_says_there_is_a_model_or_a_reason(name: str, data: st.DataObject) -> None:
    said = dict(KNOWN[name])
    for key in data.draw(st.lists(st.sampled_from([*said, "layer_types", "quantization_config"]), max_size=3)):
        said[key] = data.draw(JSON)
    try:
        found = model_from(said, "any")
    except (ConfigError, CannotEstimateError):
        return
    assert found.parameters.total > 0


@pytest.mark.parametrize(
    ("quantised", "expected"),
    [
        (None, Widths(BF16, BF16)),
        ({"quant_method": "fp8"}, Widths(1, 1)),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, Widths(1 + 4 / 16384, 1 + 4 / 16384)),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, Widths(0.5 + 2.5 / 128, 0.5 + 2.5 / 128)),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, Widths(1, 1)),
        ({"quant_method": "gptq", "bits": 3, "group_size": 128}, None),
        ({"quant_method": "gptq"}, None),
        ({"quant_method": "mxfp4"}, None),
        ({"quant_method": "compressed-tensors", "config_groups": {}}, None),
        ({"quant_method": "modelopt"}, None),
        ({}, None),
    ],
)
def test_weights_are_as_wide_as_the_config_says_or_not_known(quantised: Any, expected: Widths | None) -> None:
    assert model_from(config(quantization_config=quantised), "q").widths == expected


@pytest.mark.parametrize(
    ("quantised", "sure"),
    [
        (None, True),
        ({"quant_method": "fp8"}, True),
        ({"quant_method": "fp8", "kv_cache_scheme": {"num_bits": 8}}, False),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": None}, True),
        ({"quant_method": "modelopt"}, False),
        ({"quant_method": "modelopt_fp4"}, False),
        ({"quant_algo": "FP8"}, False),
    ],
)
def test_a_checkpoint_that_may_bring_a_smaller_cache_is_not_taken_for_one_of_two_bytes(
    quantised: Any, sure: bool
) -> None:
    assert model_from(config(quantization_config=quantised), "q").cache_type_known is sure


def test_gpus_stand_by_size_and_are_found_as_people_write_them() -> None:
    assert [gpu.gib for gpu in GPUS] == sorted(gpu.gib for gpu in GPUS)
    assert all(gpu.source for gpu in GPUS)
    for written in ("h200", "H200", "NVIDIA H200", "nvidia_h200"):
        found = gpu_named(written)
        assert found is not None
        assert found.name == "H200"
    assert all(gpu_named(alias) for alias in ALIASES)
    assert gpu_named("GeForce RTX 3090") == gpu_named("3090")
    assert gpu_named("H2000") is None
    assert gpu_named("") is None
