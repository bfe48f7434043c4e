"""Counts a model's parameters from its dimensions, as its layers are built. Tests compare with published counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvfence.domain.estimate.facts import CannotEstimateError
from kvfence.domain.estimate.model import GroupedHeads, Parameters

if TYPE_CHECKING:
    from kvfence.domain.estimate.facts import Facts
    from kvfence.domain.estimate.model import Latent


@dataclass(frozen=True, slots=True)
class _Attention:
    """Of all layers together."""

    split: int
    keys_values: int
    low_rank: int
    whole: int
    absorbed: int = 0


def counted(facts: Facts, architecture: str, layers: int, cache: GroupedHeads | Latent) -> tuple[Parameters, int]:
    """Return the parameters of a model, and those among them that SGLang keeps a second time.

    Args:
        facts: of its config.json.
        architecture: one that `reading` knows.
        layers: all of them.
        cache: how its attention keeps tokens.

    Raises:
        ConfigError: a dimension is missing or cannot be.
        CannotEstimateError: its layers are of several kinds that are not told apart here.
    """
    hidden = facts.integer("hidden_size")
    vocabulary = facts.integer("vocab_size") * hidden
    if isinstance(cache, GroupedHeads):
        attention = _grouped(facts, architecture, layers, cache)
    else:
        attention = _latent(facts, layers, hidden)
    experts, gates = _feed_forward(facts, architecture, layers, hidden)
    parameters = Parameters(
        embedding=vocabulary,
        head=0 if facts.truth("tie_word_embeddings") else vocabulary,
        attention=attention.split,
        keys_values=attention.keys_values,
        experts=experts,
        low_rank=attention.low_rank,
        whole=attention.whole + gates + (2 * layers + 1) * hidden,
    )
    return parameters, attention.absorbed


def _grouped(facts: Facts, architecture: str, layers: int, cache: GroupedHeads) -> _Attention:
    hidden = facts.integer("hidden_size")
    queries, pairs = cache.heads * cache.head_dim, 2 * cache.kv_heads * cache.head_dim
    whole = 0
    if architecture in {"Qwen2ForCausalLM", "Qwen2MoeForCausalLM"}:
        whole = queries + pairs  # biases, always
    elif facts.truth("attention_bias"):
        whole = queries + pairs + hidden
    if architecture in {"Qwen3ForCausalLM", "Qwen3MoeForCausalLM"}:
        whole += 2 * cache.head_dim  # norms of queries and keys
    if architecture == "GptOssForCausalLM":
        whole += cache.heads  # attention sinks
    return _Attention(layers * 2 * queries * hidden, layers * pairs * hidden, 0, layers * whole)


def _latent(facts: Facts, layers: int, hidden: int) -> _Attention:
    heads = facts.integer("num_attention_heads")
    nope, rope = facts.integer("qk_nope_head_dim"), facts.integer("qk_rope_head_dim")
    values, rank = facts.integer("v_head_dim"), facts.integer("kv_lora_rank")
    query_rank = facts.integer_or("q_lora_rank", 0)
    queries = (query_rank or hidden) * heads * (nope + rope)
    absorbed = rank * heads * (nope + values)
    low_rank = hidden * (query_rank + rank + rope)
    return _Attention(
        split=layers * (queries + absorbed + heads * values * hidden),
        keys_values=0,
        low_rank=layers * low_rank,
        whole=layers * (query_rank + rank),
        absorbed=layers * absorbed,
    )


def _feed_forward(facts: Facts, architecture: str, layers: int, hidden: int) -> tuple[int, int]:
    """Return the parameters of experts and dense layers, and of what stands whole on each rank."""
    match architecture:
        case "MixtralForCausalLM":
            number, inner = facts.integer("num_local_experts"), facts.integer("intermediate_size")
            return layers * number * 3 * hidden * inner, layers * number * hidden
        case "GptOssForCausalLM":
            number, inner = facts.integer("num_local_experts"), facts.integer("intermediate_size")
            biases = number * (2 * inner + hidden)
            return layers * (number * 3 * hidden * inner + biases), layers * number * (hidden + 1)
        case "Qwen2MoeForCausalLM" | "Qwen3MoeForCausalLM":
            return _qwen_experts(facts, layers, hidden)
        case "DeepseekV2ForCausalLM" | "DeepseekV3ForCausalLM":
            return _deepseek_experts(facts, architecture, layers, hidden)
        case _:
            return layers * 3 * hidden * facts.integer("intermediate_size"), 0


def _qwen_experts(facts: Facts, layers: int, hidden: int) -> tuple[int, int]:
    if facts.has("mlp_only_layers") or facts.integer_or("decoder_sparse_step", 1) != 1:
        raise CannotEstimateError("only some of its layers have experts, and which ones is not modelled")
    number = facts.integer("num_experts")
    shared = facts.integer_or("shared_expert_intermediate_size", 0)
    inner = number * facts.integer("moe_intermediate_size") + shared
    return layers * 3 * hidden * inner, layers * hidden * (number + (1 if shared else 0))


def _deepseek_experts(facts: Facts, architecture: str, layers: int, hidden: int) -> tuple[int, int]:
    if facts.integer_or("moe_layer_freq", 1) != 1:
        raise CannotEstimateError("only some of its layers have experts, and which ones is not modelled")
    dense = min(facts.integer_or("first_k_dense_replace", 0), layers)
    number = facts.integer("n_routed_experts")
    inner = (number + facts.integer_or("n_shared_experts", 0)) * facts.integer("moe_intermediate_size")
    routed = (layers - dense) * 3 * hidden * inner
    bias = 1 if architecture == "DeepseekV3ForCausalLM" else 0  # for choosing experts
    gates = (layers - dense) * number * (hidden + bias)
    return routed + dense * 3 * hidden * facts.integer("intermediate_size"), gates
