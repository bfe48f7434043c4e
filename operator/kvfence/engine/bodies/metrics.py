"""What `/metrics` of SGLang and vLLM says of sizes: the text format of Prometheus, read line by line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.diagnosis.seen import Product
from kvfence.engine.bodies.said import RANKS_LIMIT, Said, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

METRICS = "/metrics"

_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]{0,99})="((?:[^"\\]|\\.)*)"')
_LINE_LIMIT = 65_536
"""Characters; vLLM has all of its cache's settings in the labels of one line."""

_SGLANG = frozenset({"sglang:max_total_num_tokens", "sglang:max_total_num_tokens_swa", "sglang:context_len"})
_VLLM = "vllm:cache_config_info"
_ROLES = {"prefill": RoleType.PREFILL, "decode": RoleType.DECODE, "unified": RoleType.UNIFIED}


def metrics(raw: bytes) -> Said | None:
    """Return what the metrics say; none when there is nothing in them about a KV pool."""
    found = [(name, labels, value) for name, labels, value in _samples(raw) if name in _SGLANG or name == _VLLM]
    vllm = [labels for name, labels, _ in found if name == _VLLM]
    if vllm:
        return _of_vllm(vllm)
    return _of_sglang(found) if found else None


def _samples(raw: bytes) -> Iterator[tuple[str, dict[str, str], str]]:
    for line in raw.decode("utf-8", "replace").splitlines():
        if line.startswith(("sglang:", "vllm:")) and len(line) <= _LINE_LIMIT and (match := _SAMPLE.fullmatch(line)):
            yield match[1], dict(_LABEL.findall(match[2] or "")), match[3]


def _of_sglang(found: list[tuple[str, dict[str, str], str]]) -> Said:
    pools: dict[int, set[int]] = {}
    contexts: set[int] = set()
    roles: set[str] = set()
    sliding = False
    for name, labels, value in found:
        number = _whole(value)
        roles.add(labels.get("engine_type", ""))
        if name == "sglang:context_len":
            contexts |= {number} if number else set()
        elif name == "sglang:max_total_num_tokens_swa":
            sliding = sliding or bool(number)
        elif number and (rank := _rank(labels.get("dp_rank", "0"))) is not None:
            pools.setdefault(rank, set()).add(number)
    twice = [rank for rank, figures in pools.items() if len(figures) > 1]
    return Said(
        where=METRICS,
        product=Product.SGLANG,
        role=_ROLES.get(next(iter(roles))) if len(roles) == 1 else None,
        pools={rank: next(iter(figures)) for rank, figures in pools.items() if rank not in twice},
        context=next(iter(contexts)) if len(contexts) == 1 else None,
        sliding=sliding,
        notes=tuple(f"{METRICS} has several pools for rank {rank}; none is counted." for rank in sorted(twice)),
    )


def _of_vllm(found: list[dict[str, str]]) -> Said:
    """Blocks times their size is the pool where all layers cache alike; how others share them is not told."""
    pools: dict[int, int] = {}
    notes: list[str] = []
    for labels in found:
        rank, pool = _rank(labels.get("engine", "0")), _blocks(labels)
        if rank is None or pool is None:
            continue
        if _mixed(labels):
            notes.append("The KV pool is not told in tokens: the layers of this model do not all cache alike.")
        else:
            pools[rank] = pool
    return Said(METRICS, Product.VLLM, pools=pools, dp_size=len(found) or None, notes=tuple(dict.fromkeys(notes)))


def _blocks(labels: Mapping[str, str]) -> int | None:
    blocks, size = _whole(labels.get("num_gpu_blocks", "")), _whole(labels.get("block_size", ""))
    return tokens(blocks * size) if blocks and size else None


def _mixed(labels: Mapping[str, str]) -> bool:
    unset = {None, "", "None", "null", "0"}
    return any(labels.get(name) not in unset for name in ("sliding_window", "mamba_block_size"))


def _rank(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,4}", text) and int(text) < RANKS_LIMIT else None


def _whole(text: str) -> int | None:
    """Prometheus has every number as one with a point: 4096.0, 1.05e+06."""
    try:
        return tokens(float(text))
    except ValueError:
        return None
