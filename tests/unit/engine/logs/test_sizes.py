"""Which number is the pool's, and when none is."""

from __future__ import annotations

import pytest

from tests.unit.engine.logs.reading import engines, one, seen, sizes

SUMMARY = (
    "[2026-01-01 00:00:09 TP0] max_total_num_tokens={}, chunked_prefill_size=8192, "
    "context_len={}, available_gpu_mem=1.00 GB\n"
)


@pytest.mark.parametrize(
    "line",
    [
        "Allocating kv hierarchical KV host pool: 3423488 tokens, 153.81 GB host memory.",
        "draft KV Cache is allocated. dtype: torch.bfloat16, #tokens: 7, K size: 1.00 GB, V size: 1.00 GB",
        "KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 7, K size: 1.00 GB, V size: 1.00 GB",
        "Mamba Cache is allocated. max_mamba_cache_size: 97, conv_state size: 0.10GB, ssm_state size: 5.17GB",
        "[kvcached][INFO] Physical KV Cache limits by --mem-fraction-static: #tokens: 7, K size: 4.27 GB",
    ],
)
def test_a_pool_that_bounds_no_request_is_none(line: str) -> None:
    assert [pool for pool, _ in sizes(f"[2026-01-01 00:00:01 TP0] Load weight begin. avail mem=9 GB\n{line}\n")] == [
        None
    ]


def test_an_upper_bound_makes_the_sizes_before_the_last_one_void() -> None:
    before = """\
        [2026-01-01 00:00:01 TP0] Use sliding window memory pool. full_layer_tokens=900, swa_layer_tokens=90
        [2026-01-01 00:00:01 TP0] KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 900, KV size: 1.00 GB
        """
    after = """\
        [2026-01-01 00:00:05 TP0] Post-capture KV sizing: full_layer_tokens=800, swa_layer_tokens=80
        [2026-01-01 00:00:05 TP0] Post-capture KV sizing: KV cache allocated. dtype: bf16, #tokens: 800, KV
        """
    assert sizes(before) == [(None, None)]
    assert sizes(before + after) == [(800, None)]


def test_a_model_with_windows_alone_is_bound_by_them() -> None:
    assert sizes("Use sliding window memory pool (all SWA). swa_layer_tokens=400\n") == [(400, None)]


def test_a_pool_that_holds_nothing_itself_tells_its_logical_size() -> None:
    assert sizes("KV Cache skipped (no-op pool). Logical #tokens: 4096, dtype: x\n") == [(4096, None)]


def test_a_size_that_may_still_change_is_not_known_until_memory_was_given_out() -> None:
    first = "[2026-08-10 09:19:13 TP0] DSV4 pool sizes: full=209280, swa=20864, c4=52320\n"
    assert sizes(first) == [(None, None)]
    assert sizes(first + "[2026-08-10 09:19:14 TP0] Memory pool end. avail mem=1.62 GB\n") == [(209280, None)]


def test_the_warning_of_0_5_23_tells_pool_and_context() -> None:
    line = (
        "[2026-11-01 00:00:01 TP0] KV pool holds 681280 tokens, fewer than --context-length 1048576. One full-length "
        "request cannot fit, so long requests will be refused or truncated at serving time.\n"
    )
    assert sizes(line) == [(681280, 1048576)]


def test_a_warning_and_a_summary_that_differ_make_the_pool_unknown() -> None:
    line = "[2026-01-01 00:00:08 TP0] KV pool holds 500 tokens, fewer than --context-length 900. One\n"
    assert sizes(line + SUMMARY.format(600, 900)) == [(None, 900)]
    assert sizes(line + SUMMARY.format(500, 900)) == [(500, 900)]


def test_ranks_that_share_a_pool_are_one_engine_with_the_smallest() -> None:
    text = """\
        [2026-01-01 00:00:09 PP0] max_total_num_tokens=900, context_len=500, available_gpu_mem=1.00 GB
        [2026-01-01 00:00:09 PP1] max_total_num_tokens=800, context_len=500, available_gpu_mem=1.00 GB
        """
    assert sizes(text) == [(800, 500)]


def test_ranks_of_data_parallelism_are_engines_of_their_own() -> None:
    text = """\
        [2026-01-01 00:00:09 DP0 TP0] max_total_num_tokens=900, context_len=500, available_gpu_mem=1.00 GB
        [2026-01-01 00:00:09 DP1 TP0] max_total_num_tokens=400, context_len=500, available_gpu_mem=1.00 GB
        [2026-01-01 00:00:19] The server is fired up and ready to roll!
        """
    assert [(e.rank, e.kv_pool_tokens, e.context_fits, e.started) for e in engines(text)] == [
        (0, 900, True, True),
        (1, 400, False, True),
    ]


def test_two_sizes_of_one_rank_in_one_start_are_no_answer() -> None:
    engine = one(SUMMARY.format(900, 500) + SUMMARY.format(800, 500))
    assert (engine.kv_pool_tokens, engine.context_length) == (None, 500)
    assert engine.notes


def test_two_contexts_of_one_rank_in_one_start_are_no_answer() -> None:
    assert sizes(SUMMARY.format(900, 500) + SUMMARY.format(900, 400)) == [(900, None)]


def test_two_allocations_of_one_rank_without_a_summary_are_no_answer() -> None:
    line = "[2026-01-01 00:00:09 TP0] KV Cache is allocated. #tokens: {}, K size: 1.00 GB, V size: 1.00 GB\n"
    assert sizes(line.format(900) + line.format(720)) == [(None, None)]
    assert sizes(line.format(900) + line.format(900)) == [(900, None)]


@pytest.mark.parametrize(
    "number", ["0", "-5", "9007199254740993", "1" * 39, "12.5", "1.226.984", "1 226 984", "1'226", "5\u202f000", "5..."]
)
def test_what_is_no_number_of_tokens_makes_the_pool_unknown(number: str) -> None:
    assert sizes(SUMMARY.format(number, 500))[0][0] is None


@pytest.mark.parametrize("number", ["1226984", "1,226,984", "1_226_984"])
def test_digits_may_be_grouped(number: str) -> None:
    assert sizes(SUMMARY.format(number, 500)) == [(1226984, 500)]


def test_a_wish_is_no_result() -> None:
    text = "server_args=ServerArgs(model_path='m', context_length=32768, max_total_tokens=4096, page_size=64)\n"
    engine = one(text)
    assert (engine.kv_pool_tokens, engine.context_length) == (None, None)
    assert (engine.settings["context_length"], engine.page_size) == (32768, 64)


def test_an_engine_tells_its_input_limit_only_in_a_refusal() -> None:
    limit = "[2026-01-01 00:01:00 TP0] Input length (900 tokens) exceeds the maximum allowed length ({} tokens).\n"
    assert one(SUMMARY.format(900, 500)).told_input_limit is None
    assert one(SUMMARY.format(900, 500) + limit.format(494)).told_input_limit == 494
    assert one(SUMMARY.format(900, 500) + limit.format(300)).told_input_limit == 300
    above = one(SUMMARY.format(900, 500) + limit.format(495))
    assert above.told_input_limit is None
    assert above.notes
    assert one(SUMMARY.format(900, 500) + limit.format(494) + limit.format(400)).told_input_limit is None


def test_nothing_of_an_engine_is_said_to_be_unreadable_with_a_way_out() -> None:
    for raw in (b"", b"hello\n", b"\x00" * 100, b"INFO: Uvicorn running on http://x\n", b"\x1f\x8b\x08broken"):
        (found,) = seen(raw)
        assert not hasattr(found, "rank")
        assert "start" in found.why
