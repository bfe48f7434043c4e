"""Models that can be named: what their config.json says, as far as it counts here.

Where the figures are from: the model's published config.json (of its repository on the Hugging Face hub, by the name
below). Those of Llama-3.1-8B, QwQ-32B, Qwen3, DeepSeek-V3 and gpt-oss were compared with copies in public repositories;
of every model a test compares what is counted from them with the published number of parameters; the field logs 001,
002, 013, 025, 027, 030 and 034 confirm the bytes of one token.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from kvfence.domain.estimate.reading import model_from

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.domain.estimate.model import Model

FP8 = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}


def _dense(
    architecture: str, context: int, vocabulary: int, sizes: tuple[int, int, int, int, int]
) -> dict[str, object]:
    hidden, inner, layers, heads, kv_heads = sizes
    return {
        "architectures": [architecture],
        "max_position_embeddings": context,
        "vocab_size": vocabulary,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
    }


def _gpt_oss(layers: int, experts: int) -> dict[str, object]:
    return {
        **_dense("GptOssForCausalLM", 131072, 201088, (2880, 2880, layers, 64, 8)),
        "head_dim": 64,
        "attention_bias": True,
        "num_local_experts": experts,
        "sliding_window": 128,
        "layer_types": ["sliding_attention", "full_attention"] * (layers // 2),
        "quantization_config": {"quant_method": "mxfp4"},
    }


QWEN3_235B: dict[str, object] = {
    **_dense("Qwen3MoeForCausalLM", 40960, 151936, (4096, 12288, 94, 64, 4)),
    "head_dim": 128,
    "num_experts": 128,
    "moe_intermediate_size": 1536,
    "decoder_sparse_step": 1,
}
DEEPSEEK_V3: dict[str, object] = {
    **_dense("DeepseekV3ForCausalLM", 163840, 129280, (7168, 18432, 61, 128, 128)),
    **FP8,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3,
    "moe_layer_freq": 1,
}
LLAMA_8B = _dense("LlamaForCausalLM", 131072, 128256, (4096, 14336, 32, 32, 8))
LLAMA_70B = _dense("LlamaForCausalLM", 131072, 128256, (8192, 28672, 80, 64, 8))

KNOWN: dict[str, Mapping[str, object]] = {
    "meta-llama/Llama-3.1-8B-Instruct": LLAMA_8B,
    "meta-llama/Llama-3.1-70B-Instruct": LLAMA_70B,
    "meta-llama/Llama-3.3-70B-Instruct": LLAMA_70B,
    "mistralai/Mistral-7B-Instruct-v0.1": _dense("MistralForCausalLM", 32768, 32000, (4096, 14336, 32, 32, 8)),
    "Qwen/QwQ-32B": _dense("Qwen2ForCausalLM", 131072, 152064, (5120, 27648, 64, 40, 8)),
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B": _dense("Qwen2ForCausalLM", 131072, 152064, (5120, 27648, 64, 40, 8)),
    "Qwen/Qwen3-4B": {
        **_dense("Qwen3ForCausalLM", 40960, 151936, (2560, 9728, 36, 32, 8)),
        "head_dim": 128,
        "tie_word_embeddings": True,
    },
    "Qwen/Qwen3-235B-A22B": QWEN3_235B,
    "Qwen/Qwen3-235B-A22B-FP8": {**QWEN3_235B, **FP8},
    "deepseek-ai/DeepSeek-V3": DEEPSEEK_V3,
    "deepseek-ai/DeepSeek-R1": DEEPSEEK_V3,
    "deepseek-ai/DeepSeek-R1-0528": DEEPSEEK_V3,
    "openai/gpt-oss-20b": _gpt_oss(24, 32),
    "openai/gpt-oss-120b": _gpt_oss(36, 128),
}
"""By the name on the hub."""


def known_model(name: str) -> Model | None:
    """Return a model by its name, with or without its owner, in any case; none when it is not known."""
    for full, said in KNOWN.items():
        if name.casefold() in {full.casefold(), full.rpartition("/")[2].casefold()}:
            return model_from(said, full)
    return None


def names_near(name: str) -> tuple[str, ...]:
    """Return names of models that look like one that is not known."""
    short = {full.rpartition("/")[2].casefold(): full for full in KNOWN}
    near = difflib.get_close_matches(name.rpartition("/")[2].casefold()[:100], short, n=3, cutoff=0.5)
    return tuple(short[one] for one in near)
