"""Which start of an engine counts, and whether it succeeded."""

from __future__ import annotations

import pytest

from kvfence.api.v1alpha1.pool import RoleType
from tests.unit.engine.logs.reading import engines, one, sizes


def at(second: int, words: str, tags: str = " TP0") -> str:
    """Return a record of some second."""
    return f"[2026-01-01 00:{second // 60:02}:{second % 60:02}{tags}] {words}\n"


def alloc(second: int, tokens: int) -> str:
    return at(second, f"KV Cache is allocated. #tokens: {tokens}, K size: 1.00 GB, V size: 1.00 GB")


def summary(second: int, tokens: int, context: int = 500, tags: str = " TP0") -> str:
    return at(second, f"max_total_num_tokens={tokens}, context_len={context}, available_gpu_mem=1.00 GB", tags)


READY = "The server is fired up and ready to roll!"
ARGS = "server_args=ServerArgs(model_path='m', disaggregation_mode='{}', port={})"
FAIL = "Scheduler hit an exception: Traceback (most recent call last):"


def test_the_last_start_counts() -> None:
    first = at(0, "Load weight begin. avail mem=9 GB") + alloc(10, 900) + summary(20, 900) + at(30, READY, "")
    second = at(300, "Load weight begin. avail mem=9 GB") + alloc(310, 700) + summary(320, 700)
    assert sizes(first + second) == [(700, 500)]
    assert sizes(first + at(300, "Load weight begin. avail mem=9 GB")) == [(None, None)]
    assert sizes(first + alloc(310, 700)) == [(700, None)]


def test_a_new_start_is_known_by_its_settings() -> None:
    first = summary(20, 900) + at(30, READY, "")
    assert sizes(first + at(300, ARGS.format("null", 1), "") + summary(320, 700)) == [(700, 500)]
    assert sizes(first + at(300, ARGS.format("null", 1), "")) == [(None, None)]


def test_a_draft_model_that_is_loaded_begins_no_start() -> None:
    text = (
        at(0, "Load weight begin.") + alloc(10, 900) + at(11, "Load weight begin.") + alloc(12, 900) + summary(20, 900)
    )
    engine = one(text)
    assert (engine.kv_pool_tokens, engine.notes) == (900, ())


def test_the_order_of_lines_does_not_matter_where_they_are_stamped() -> None:
    lines = [
        at(0, "Load weight begin."),
        alloc(10, 900),
        summary(20, 900),
        at(100, "Load weight begin."),
        alloc(110, 700),
        summary(120, 700),
    ]
    for order in (lines, lines[::-1], lines[3:] + lines[:3], [lines[i] for i in (4, 1, 5, 0, 3, 2)]):
        assert sizes("".join(order)) == [(700, 500)]


@pytest.mark.parametrize(
    "failure",
    [
        at(12, FAIL),
        at(12, "Received sigquit from a child process. It usually means the child failed.", ""),
        "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9).\n",
        "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.5\n",
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nRuntimeError: no\n",
        "Killed\n",
    ],
)  # fmt: skip
def test_a_start_that_failed_has_no_pool(failure: str) -> None:
    engine = one(at(0, "Load weight begin.") + alloc(10, 900) + failure)
    assert (engine.started, engine.kv_pool_tokens, engine.context_length) == (False, None, None)
    assert "900" in engine.notes[0]


def test_a_container_that_compose_says_failed_did_not_start() -> None:
    text = "llm-1  | " + alloc(10, 900) + "llm-1 exited with code 1\n"
    assert one(text).started is False
    assert one(text.replace("code 1", "code 0")).started is None


def test_a_traceback_that_the_engine_outlived_is_no_failure() -> None:
    trace = "Traceback (most recent call last):\nImportError: no such optional part\n"
    engine = one(trace + alloc(10, 900) + trace + at(12, "Memory pool end. avail mem=1 GB"))
    assert (engine.started, engine.kv_pool_tokens) == (None, 900)


def test_an_engine_that_fails_when_it_is_ready_has_started() -> None:
    engine = one(alloc(10, 900) + summary(20, 900) + at(30, READY, "") + at(900, FAIL))
    assert (engine.started, engine.kv_pool_tokens) == (True, 900)
    assert "failed after" in engine.notes[0]


def test_a_server_that_cannot_bind_has_not_started() -> None:
    text = summary(20, 900) + at(30, "INFO:     Application startup complete.", "")
    assert one(text).started is True
    assert (
        one(
            text
            + at(
                31,
                "ERROR:    [Errno 98] error while attempting to bind on address ('::', 1): address already in use",
                "",
            )
        ).started
        is False
    )


def test_a_failure_and_a_success_in_no_order_are_no_answer() -> None:
    engine = one(
        "RuntimeError: Rank 0 scheduler died during initialization\nmax_total_num_tokens=900, context_len=500\n"
    )
    assert (engine.started, engine.kv_pool_tokens) == (None, None)


def test_a_line_long_after_a_failure_is_of_another_start() -> None:
    failed = at(0, "Load weight begin.") + alloc(10, 900) + at(12, FAIL)
    assert sizes(failed + summary(400, 700)) == [(700, 500)]
    assert one(failed + at(14, "Memory pool end. avail mem=1 GB", " TP1")).started is False
    assert one(failed + at(400, "Something else")).started is None


def test_two_halves_in_one_file_are_told_apart_by_their_settings() -> None:
    prefill = at(0, ARGS.format("prefill", 30000), "") + summary(10, 900)
    decode = at(20, ARGS.format("decode", 30001), "") + summary(30, 700)
    found = engines(prefill + decode, "pair.log")
    assert [(e.source, e.role, e.kv_pool_tokens) for e in found] == [
        ("pair.log (prefill)", RoleType.PREFILL, 900),
        ("pair.log (decode)", RoleType.DECODE, 700),
    ]


def test_two_halves_that_start_at_once_in_one_file_are_not_told_apart() -> None:
    both = at(0, ARGS.format("prefill", 30000), "") + at(1, ARGS.format("decode", 30001), "")
    assert sizes(both + summary(10, 900) + summary(11, 700)) == [(None, None)]


def test_a_server_without_a_partner_says_so() -> None:
    assert one(at(0, ARGS.format("null", 1), "") + summary(10, 900)).role is RoleType.UNIFIED


def test_a_version_is_told_only_by_a_line_that_states_it() -> None:
    assert one("sglang version: 0.5.19\n" + summary(1, 900)).version == "0.5.19"
    assert one("sglang==0.5.19\nsglang==0.5.23\n" + summary(1, 900)).version is None
    assert one("# sglang: 0.5.19 [inferred]\n" + summary(1, 900)).version is None
