"""Reads a model from its config.json, or says why no estimate can be given for it.

Only architectures are read of which it was looked up how SGLang lays out their cache (`pool_configurator.py` and
`configs/model_config.py` of 0.5.23). A list of what is not read would let the next new architecture through, with a
number that is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.domain.estimate.counting import counted
from kvfence.domain.estimate.facts import CannotEstimateError, ConfigError, Facts
from kvfence.domain.estimate.model import GroupedHeads, Latent, Model
from kvfence.domain.estimate.quantisation import cache_type_is_known, widths

if TYPE_CHECKING:
    from collections.abc import Mapping

GROUPED = frozenset(
    {
        "LlamaForCausalLM",
        "MistralForCausalLM",
        "MixtralForCausalLM",
        "Qwen2ForCausalLM",
        "Qwen2MoeForCausalLM",
        "Qwen3ForCausalLM",
        "Qwen3MoeForCausalLM",
    }
)
"""Keys and values of each head, of every token in every layer: also where the model itself has a sliding window."""
SLIDING = frozenset({"GptOssForCausalLM"})
"""As above, with a second pool for the layers that look through a window only."""
LATENT = frozenset({"DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM"})
"""One compressed vector for each token and layer."""

OTHER_CACHES: tuple[tuple[str, str], ...] = (
    ("text_config", "it is a multimodal model, and the memory of what it sees with is not modelled"),
    ("vision_config", "it is a multimodal model, and the memory of what it sees with is not modelled"),
    ("index_topk", "it has sparse attention (DSA), whose index cache differs by release and attention backend"),
    ("index_head_dim", "it has sparse attention (DSA), whose index cache differs by release and attention backend"),
    ("compress_ratios", "its attention is compressed by layer (DeepSeek V4), into pools that differ by release"),
    ("linear_attn_config", "some of its layers are linear attention, which has a pool of states beside the KV pool"),
    (
        "linear_num_value_heads",
        "some of its layers are linear attention, which has a pool of states beside the KV pool",
    ),
    ("full_attention_interval", "only some of its layers are full attention, the others have a pool of states"),
    ("mamba_d_state", "some of its layers are Mamba, which has a pool of states beside the KV pool"),
    ("mamba_d_conv", "some of its layers are Mamba, which has a pool of states beside the KV pool"),
    ("ssm_state_size", "some of its layers are Mamba, which has a pool of states beside the KV pool"),
    ("hybrid_override_pattern", "some of its layers are Mamba, which has a pool of states beside the KV pool"),
    ("layers_block_type", "its layers are of several kinds, not all of them attention"),
    ("block_configs", "its layers are of several kinds, not all of them attention"),
    ("swa_num_key_value_heads", "its windowed layers have KV heads of their own"),
)
"""Keys of a config that mean another cache than what is modelled here, whatever the architecture is called."""

REMEDY = "Start it and measure: `kvfence doctor` reads the pool from the log or the server."


def model_from(said: Mapping[str, object], name: str) -> Model:
    """Return the model that a config.json describes.

    Args:
        said: what is in it.
        name: what to call the model.

    Raises:
        ConfigError: it contradicts itself, or lacks something.
        CannotEstimateError: the model has another cache than those that are modelled.
    """
    facts = Facts(said)
    architecture = _architecture(facts)
    for key, why in OTHER_CACHES:
        if facts.has(key):
            raise CannotEstimateError(f"No estimate for {architecture}: {why}. {REMEDY}")
    if architecture not in GROUPED | SLIDING | LATENT:
        raise CannotEstimateError(
            f"No estimate for {architecture}: how SGLang keeps its tokens is not known here. {REMEDY}"
        )
    layers = facts.integer("num_hidden_layers")
    sliding = _sliding(facts, architecture, layers)
    cache = _latent(facts) if architecture in LATENT else _grouped(facts)
    parameters, absorbed = counted(facts, architecture, layers, cache)
    quantisation = facts.part("quantization_config")
    return Model(
        name=name,
        architecture=architecture,
        layers=layers - sliding,
        sliding_layers=sliding,
        cache=cache,
        parameters=parameters,
        widths=widths(quantisation, architecture),
        quantisation=None if quantisation is None else quantisation.text("quant_method") or "an unnamed method",
        absorbed=absorbed,
        cache_type_known=cache_type_is_known(quantisation),
        context=facts.integer("max_position_embeddings"),
    )


def _architecture(facts: Facts) -> str:
    architectures = facts.texts("architectures")
    if len(architectures) != 1:
        raise ConfigError("it does not name one architecture; is it the config.json of a model?")
    return architectures[0][:100]


def _sliding(facts: Facts, architecture: str, layers: int) -> int:
    """Return how many layers keep a window only; 0 where SGLang keeps all of them whole."""
    kinds = facts.texts("layer_types")
    if strange := set(kinds) - {"full_attention", "sliding_attention"}:
        raise CannotEstimateError(f"No estimate for {architecture}: it has layers of {min(strange)[:50]}. {REMEDY}")
    if kinds and len(kinds) != layers:
        raise ConfigError("layer_types does not have one entry for each layer")
    if architecture not in SLIDING:
        return 0
    sliding = kinds.count("sliding_attention")
    if not 0 < sliding < layers:
        raise CannotEstimateError(
            f"No estimate for {architecture}: it does not say which layers are windowed. {REMEDY}"
        )
    return sliding


def _grouped(facts: Facts) -> GroupedHeads:
    heads = facts.integer("num_attention_heads")
    hidden = facts.integer("hidden_size")
    head_dim = facts.integer_or("head_dim", hidden // heads, least=1)
    kv_heads = facts.integer_or("num_key_value_heads", heads, least=1)
    if kv_heads > heads or heads % kv_heads or head_dim < 1:
        raise ConfigError("its numbers of heads contradict each other")
    return GroupedHeads(heads, kv_heads, head_dim)


def _latent(facts: Facts) -> Latent:
    width = facts.integer("kv_lora_rank") + facts.integer("qk_rope_head_dim")
    return Latent(facts.integer("num_attention_heads"), width)
