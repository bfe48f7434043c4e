"""What vLLM's log tells, of its first engine and of today's."""

from __future__ import annotations

from kvfence.domain.diagnosis.seen import Product
from tests.unit.engine.logs.reading import engines, one

V1 = """\
    (APIServer pid=1) INFO 08-01 12:00:00 [api_server.py:1395] vLLM API server version 0.10.2
    (APIServer pid=1) INFO 08-01 12:00:00 [utils.py:233] non-default args: {'model': 'm', 'api_key': ['sk-9']}
    (EngineCore_0 pid=9) INFO 08-01 12:00:09 Initializing a V1 LLM engine (v0.10.2) with config: max_seq_len=32768, x=1
    (EngineCore_0 pid=9) INFO 08-01 12:00:30 [kv_cache_utils.py:829] GPU KV cache size: 178,880 tokens
    (EngineCore_0 pid=9) INFO 08-01 12:00:30 [x.py:8] Maximum concurrency for 32,768 tokens per request: 5.46x
    (APIServer pid=1) INFO:     Application startup complete.
    """


def test_the_engine_of_today_tells_pool_context_and_version() -> None:
    engine = one(V1)
    assert (engine.product, engine.version, engine.started) == (Product.VLLM, "0.10.2", True)
    assert (engine.kv_pool_tokens, engine.context_length) == (178880, 32768)
    assert engine.keys_shown == ("api_key",)
    assert "sk-9" not in repr(engine)


def test_each_core_of_data_parallelism_is_an_engine() -> None:
    text = """\
        (EngineCore_DP0 pid=9) INFO 08-01 12:00:30 [kv_cache_utils.py:829] GPU KV cache size: 178,880 tokens
        (EngineCore_DP1 pid=9) INFO 08-01 12:00:30 [kv_cache_utils.py:829] GPU KV cache size: 100,000 tokens
        """
    assert [(e.rank, e.kv_pool_tokens) for e in engines(text)] == [(0, 178880), (1, 100000)]


def test_blocks_are_tokens_only_when_their_size_is_told() -> None:
    blocks = "INFO 02-04 07:17:50 gpu_executor.py:122] # GPU blocks: 2021, # CPU blocks: 512\n"
    assert one(blocks).kv_pool_tokens is None
    args = "INFO 02-04 07:17:40 api_server.py:1] args: Namespace(model='m', block_size=16, swap_space=4)\n"
    assert one(args + blocks).kv_pool_tokens == 2021 * 16


def test_contexts_that_differ_are_no_answer() -> None:
    assert one(V1.replace("for 32,768", "for 16,384")).context_length is None


def test_a_core_that_fails_is_no_start() -> None:
    text = V1.rsplit("\n", 2)[0] + "\n    RuntimeError: Engine core initialization failed. See root cause above.\n"
    engine = one(text.replace("Application startup complete.", "waiting"))
    assert (engine.started, engine.kv_pool_tokens) == (False, None)


def test_a_second_start_counts() -> None:
    assert one(V1 + V1.replace("178,880", "200,000")).kv_pool_tokens == 200000


def test_two_products_in_one_log_are_no_answer() -> None:
    assert all(e.kv_pool_tokens is None for e in engines(V1 + "    max_total_num_tokens=900, context_len=500\n"))
