"""What must not be reachable through the front of a pool: the other paths of the router and of the engine behind it.

The lists are those of smg 1.13 and of SGLang 0.5.23 (its `/openapi.json`, and what it serves beside that). The front
lets named paths through and no others, so that a path which is missing here is shut as well; the list is there to see
that a front does so. Bodies sent there are empty objects, which none of these paths does anything with.
"""

from __future__ import annotations

ROUTER = (
    "/workers",
    "/workers/1",
    "/add_worker",
    "/remove_worker",
    "/list_workers",
    "/get_loads",
    "/v1/tokenizers",
    "/flush_cache",
    "/start_profile",
    "/stop_profile",
    "/wasm",
    "/parse/function_call",
    "/parse/reasoning",
    "/health",
    "/liveness",
    "/readiness",
    "/health_generate",
    "/get_server_info",
    "/engine_metrics",
    "/metrics",
    "/generate",
    "/v1/messages",
    "/v1/responses",
    "/v1/conversations",
    "/v1/embeddings",
    "/v1/classify",
    "/v1/rerank",
    "/v1/tokenize",
    "/v1/detokenize",
    "/tokenize",
    "/detokenize",
    "/rerank",
)
"""Of smg: control, probes, metrics, and inference paths that the pool does not offer."""

ENGINE = (
    "/",
    "/server_info",
    "/model_info",
    "/get_model_info",
    "/v1/loads",
    "/loads",
    "/get_load",
    "/openapi.json",
    "/docs",
    "/abort_request",
    "/open_session",
    "/close_session",
    "/encode",
    "/classify",
    "/invocations",
    "/ping",
    "/v1/score",
    "/v1/realtime",
    "/v1/audio/transcriptions",
    "/v1/messages/count_tokens",
    "/set_internal_state",
    "/configure_logging",
    "/set_trace_level",
    "/slow_down",
    "/freeze_gc",
    "/pause_generation",
    "/continue_generation",
    "/release_memory_occupation",
    "/resume_memory_occupation",
    "/load_lora_adapter",
    "/unload_lora_adapter",
    "/update_weights_from_disk",
    "/get_weights_by_name",
    "/weights_checker",
    "/hicache/storage-backend",
    "/clear_hicache_storage_backend",
    "/start_expert_distribution_record",
    "/dump_expert_distribution_record",
    "/status",
    "/admission",
)
"""Of SGLang, and at the end of the launcher of kvfence-engine."""

DISGUISED = (
    "//workers",
    "/%77orkers",
    "/v1/../workers",
    "/v1/%2e%2e/workers",
    "/v1/completions/../../workers",
    "/v1/completions/%2e%2e/%2e%2e/workers",
    "/v1/completions/..%2f..%2fworkers",
    "/v1/completions/workers",
    "/v1/completions;/../../workers",
    "/./workers",
    "/workers/",
    "/workers?a=/v1/completions",
    "/WORKERS",
    "/v1/models/x",
)
"""Paths that mean a shut one to whoever decodes or shortens them, or look like one that is open."""

CLOSED = (
    *((method, path) for path in (*ROUTER, *ENGINE, *DISGUISED) for method in ("GET", "POST")),
    ("DELETE", "/workers/1"),
    ("PATCH", "/workers/1"),
    ("PUT", "/workers/1"),
    ("GET", "/v1/completions"),
    ("GET", "/v1/chat/completions"),
    ("POST", "/v1/models"),
    ("DELETE", "/v1/models"),
)
"""Methods and paths that must not be there."""
