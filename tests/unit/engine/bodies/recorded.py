"""Answers of real servers, cut to what matters: SGLang 0.5.23 on CPU, smg 1.13.0 and sglang-router 0.3.2 with it, and
vLLM's as its documentation and field reports have them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

KEY = "kv-own-key-1234"
"""Must never come out of anything."""

PREFILL, DECODE = "http://10.0.0.1:30000", "http://10.0.0.2:30000"

METRICS = b"""# HELP sglang:max_total_num_tokens Maximum total number of tokens in the KV cache pool.
# TYPE sglang:max_total_num_tokens gauge
sglang:max_total_num_tokens{engine_type="unified",model_name="tiny",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 4096.0
sglang:context_len{engine_type="unified",model_name="tiny",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 4096.0
"""

VLLM_METRICS = b"""# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="0",num_gpu_blocks="1000",sliding_window="None"} 1.0
vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="1",num_gpu_blocks="900",sliding_window="None"} 1.0
"""

SMG_MODELS = {"object": "list", "data": [{"id": "tiny", "object": "model", "created": 0, "owned_by": "self_hosted"}]}
ROUTER_MODELS = {"object": "list", "data": [{"id": "tiny", "object": "model", "owned_by": "local"}]}
ROUTER_INFO = {"router_manager": True, "routers_count": 1, "workers_count": 2}
VLLM_MODELS = {
    "object": "list",
    "data": [{"id": "m", "object": "model", "owned_by": "vllm", "root": "m", "parent": None, "max_model_len": 15000}],
}


def server_info(**changes: Any) -> dict[str, Any]:
    """Return `/server_info` of one server without a partner; `ranks` are the pools in `internal_states`."""
    ranks = changes.pop("ranks", (changes.get("max_total_num_tokens", 4096),))
    arguments: dict[str, Any] = {
        "model_path": "/models/tiny",
        "tokenizer_path": "/models/tiny",
        "served_model_name": "tiny",
        "context_length": 4096,
        "max_total_tokens": 4096,
        "kv_cache_dtype": "auto",
        "page_size": 1,
        "tp_size": 1,
        "dp_size": len(ranks),
        "allow_auto_truncate": False,
        "api_key": None,
        "admin_api_key": None,
        "ssl_keyfile": None,
        "ssl_keyfile_password": None,
        "num_reserved_decode_tokens": 512,
        "disaggregation_mode": "null",
        "disaggregation_transfer_backend": "mooncake",
        "disaggregation_enable_kv_checksum": False,
        "launch_command": "--model-path /models/tiny --port 30000",
    }
    top = {"status": "ready", "max_total_num_tokens": ranks[0], "max_req_input_len": 4090, "version": "0.5.23"}
    arguments |= {name: value for name, value in changes.items() if name not in top}
    states = [{**arguments, "memory_usage": {"token_capacity": pool, "token_capacity_swa": None}} for pool in ranks]
    return {**arguments, **top, **changes, "internal_states": states}


def loads(*pools: int) -> dict[str, Any]:
    """Return `/v1/loads`."""
    listed = [{"dp_rank": rank, "max_total_num_tokens": pool, "num_used_tokens": 0} for rank, pool in enumerate(pools)]
    return {"timestamp": "2026-11-30T22:54:23+00:00", "version": "0.5.23", "accelerator": None, "loads": listed}


def models(length: int | None = 4096) -> dict[str, Any]:
    """Return `/v1/models` of SGLang."""
    one = {
        "id": "tiny",
        "object": "model",
        "owned_by": "sglang",
        "root": "tiny",
        "parent": None,
        "max_model_len": length,
    }
    return {"object": "list", "data": [one]}


def smg_workers(*urls: str) -> dict[str, Any]:
    """Return `/workers` of smg."""
    listed = [{"id": url, "url": url, "labels": {"max_total_tokens": "9"}, "pd_pairing": "sglang/?/?"} for url in urls]
    return {"workers": listed, "total": len(listed), "stats": {"prefill_count": 1, "decode_count": 1}}


def router_workers(*urls: str) -> dict[str, Any]:
    """Return `/workers` of sglang-router."""
    listed = [{"id": url, "url": url, "metadata": {"tp_size": "1"}, "disable_health_check": False} for url in urls]
    return {"workers": listed, "total": len(listed), "stats": {"prefill_count": 1, "decode_count": 1}}


def raw(body: Mapping[str, Any] | list[Any]) -> bytes:
    """Return it as it is sent."""
    return json.dumps(body).encode()
