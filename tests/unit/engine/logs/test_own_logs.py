"""Ten logs in shapes that no field log has, each with its answer: does the reader know more than its corpus?"""

# ruff: noqa: E501 - logs are not wrapped
from __future__ import annotations

import json

import pytest

from tests.unit.engine.logs.reading import engines

LOGS: dict[str, tuple[str, list[tuple[int | None, int | None, int | None, bool | None]]]] = {
    "two replicas of compose, the names padded": (
        """\
        sglang-a-1   | [2026-11-02 10:00:00 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 4096, KV size: 1.00 GB
        sglang-bbb-1 | [2026-11-02 10:00:01 TP0] max_total_num_tokens=2048, chunked_prefill_size=512, context_len=8192, available_gpu_mem=1.00 GB
        sglang-a-1   | [2026-11-02 10:00:03 TP0] max_total_num_tokens=4096, chunked_prefill_size=512, context_len=8192, available_gpu_mem=1.00 GB
        sglang-bbb-1 | [2026-11-02 10:00:09] The server is fired up and ready to roll!
        """,
        [(None, 4096, 8192, True), (None, 2048, 8192, True)],
    ),
    "a crash loop of three starts, the last one unfinished": (
        """\
        [2026-11-02 10:00:00 TP0] Load weight begin. avail mem=78.00 GB
        [2026-11-02 10:00:30 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1000, KV size: 1.00 GB
        [2026-11-02 10:00:40 TP0] Scheduler hit an exception: Traceback (most recent call last):
        [2026-11-02 10:02:00 TP0] Load weight begin. avail mem=78.00 GB
        [2026-11-02 10:02:30 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 2000, KV size: 1.00 GB
        [2026-11-02 10:02:40 TP0] Scheduler hit an exception: Traceback (most recent call last):
        [2026-11-02 10:04:00 TP0] Load weight begin. avail mem=78.00 GB
        """,
        [(None, None, None, None)],
    ),
    "pure replicas with pools apart, one slow": (
        """\
        [2026-11-02 10:00:00 DP0 TP0] Load weight begin. avail mem=78.00 GB
        [2026-11-02 10:00:20 DP0 TP0] max_total_num_tokens=1000, context_len=900, available_gpu_mem=1.00 GB
        [2026-11-02 10:00:25 DP1 TP0] Load weight begin. avail mem=70.00 GB
        [2026-11-02 10:00:50 DP1 TP0] max_total_num_tokens=700, context_len=900, available_gpu_mem=1.00 GB
        [2026-11-02 10:00:55] INFO:     Application startup complete.
        """,
        [(0, 1000, 900, True), (1, 700, 900, True)],
    ),
    "pasted from a chat with bullets": (
        """\
        Hi all, why is it so small?
        - [2026-11-02 10:00:20 TP0] max_total_num_tokens=1000, chunked_prefill_size=512, context_len=900, available_gpu_mem=1.00 GB
        - [2026-11-02 10:00:25] The server is fired up and ready to roll!
        thanks
        """,
        [(None, 1000, 900, True)],
    ),
    "the upper bound of capture, and the size after it": (
        """\
        [2026-11-02 10:00:10 TP0] KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 900000, KV size: 9.00 GB
        [2026-11-02 10:00:20 TP0] Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 700000, KV size: 7.00 GB, avail mem=1.00 GB
        """,
        [(None, 700000, None, None)],
    ),
    "0.5.23 warns on every rank": (
        """\
        [2026-11-02 10:00:10 TP0] KV pool holds 681280 tokens, fewer than --context-length 1048576. One full-length request cannot fit
        [2026-11-02 10:00:10 TP1] KV pool holds 681280 tokens, fewer than --context-length 1048576. One full-length request cannot fit
        [2026-11-02 10:00:11 TP0] max_total_num_tokens=681280, chunked_prefill_size=8192, context_len=1048576, available_gpu_mem=1.00 GB
        """,
        [(None, 681280, 1048576, True)],
    ),
    "systemd: it is killed while it starts": (
        """\
        Nov 02 10:00:00 gpu01 python3[77]: [2026-11-02 10:00:00 TP0] Load weight begin. avail mem=78.00 GB
        Nov 02 10:00:30 gpu01 python3[77]: [2026-11-02 10:00:30 TP0] KV Cache is allocated. #tokens: 1000, K size: 1.00 GB, V size: 1.00 GB
        Nov 02 10:00:31 gpu01 python3[77]: RuntimeError: Rank 0 scheduler died during initialization (exit code: -9).
        """,
        [(None, None, None, False)],
    ),
    "context alone in a wish, the size in a window model": (
        """\
        [2026-11-02 10:00:00] server_args=ServerArgs(model_path='m', context_length=32768, page_size=64, disaggregation_mode='null')
        [2026-11-02 10:00:09 TP0] Use sliding window memory pool. full_layer_tokens=64000, swa_layer_tokens=6400
        [2026-11-02 10:00:09 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 6400, KV size: 1.00 GB
        [2026-11-02 10:00:09 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 64000, KV size: 9.00 GB
        """,
        [(None, 64000, None, None)],
    ),
    "vLLM with ranks of tensor parallelism": (
        """\
        INFO 11-02 10:00:00 [api_server.py:1] vLLM API server version 0.11.0
        (EngineCore_DP0 pid=3) INFO 11-02 10:00:30 [kv_cache_utils.py:1087] GPU KV cache size: 1,061,980 tokens
        (EngineCore_DP0 pid=3) INFO 11-02 10:00:30 [kv_cache_utils.py:1091] Maximum concurrency for 131,072 tokens per request: 8.10x
        (APIServer pid=1) INFO:     Application startup complete.
        """,
        [(0, 1061980, 131072, True)],
    ),
    "a Windows file of fluent-bit": (
        "\r\n".join(
            json.dumps({"@timestamp": f"2026-11-02T10:00:{second:02}.5Z", "kubernetes": {"pod_name": "glm-0"}, "log": line})
            for second, line in [
                (30, "\x1b[32m[2026-11-02 10:00:30]\x1b[0m The server is fired up and ready to roll!"),
                (20, "[2026-11-02 10:00:20 TP0] max_total_num_tokens=1000, context_len=900, available_gpu_mem=1.00 GB"),
                (10, "[2026-11-02 10:00:10 TP0] Load weight begin. avail mem=78.00 GB"),
            ]
        ),
        [(None, 1000, 900, True)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_a_log_of_another_shape_gives_its_answer(name: str) -> None:
    text, answer = LOGS[name]
    assert [(e.rank, e.kv_pool_tokens, e.context_length, e.started) for e in engines(text)] == answer
