"""Whose a line is, when it was, and where a record ends, by what collectors of logs leave of it."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.unit.engine.logs.reading import engines, one, sizes

LINE = (
    "[2026-01-01 00:00:09 TP0] max_total_num_tokens=900, chunked_prefill_size=8192, "
    "context_len=500, available_gpu_mem=1.00 GB"
)


@pytest.mark.parametrize(
    "front",
    [
        "2026-09-23T08:13:08.295824642Z ", "2026-09-23T08:13:08.295Z stdout F ", "[pod/x-0/main] ", "sglang-1  | ",
        "x-7d9f sglang ", "Nov 30 22:45:34 gpu01 sglang[1234]: ", "2026-11-30T22:45:34+0000 gpu01 sglang[1234]: ",
        "# ", "// ", "> ", " * ", "| ", "`", "&gt; ", "\t", "12:", "server.log:12:", "\x1b[32m", "\ufeff",
        "  8%|8         | 1/13 [00:01<00:12, 1.00it/s]", "INFO:     ", "2025-05-02 16:14:34,907 - INFO - x.y: ",
        "I0325 09:32:23.100996  7990 client.cpp:76] ", "[pod/x/main] 2026-09-23T08:13:08Z \x1b[1m> ",
    ],
)  # fmt: skip
def test_what_stands_in_front_of_a_record_is_taken_off(front: str) -> None:
    assert sizes(front + LINE + "\n") == [(900, 500)]


@pytest.mark.parametrize("name", ["log", "message", "msg"])
def test_a_record_is_read_out_of_json(name: str) -> None:
    assert sizes(json.dumps({name: LINE + "\n", "stream": "stderr"}) + "\n") == [(900, 500)]
    assert sizes(json.dumps({"log": json.dumps({name: f"\x1b[1m{LINE}"})}) + "\n") == [(900, 500)]


@pytest.mark.parametrize("mark", [" \u23ce ", "\\n", "\\r\\n"])
def test_a_log_of_one_line_is_read(mark: str) -> None:
    assert sizes(mark.join(["addresses", LINE, "[2026-01-01 00:00:10] done"]) + "\n") == [(900, 500)]


@pytest.mark.parametrize("coding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_text_of_any_coding_is_read(coding: str) -> None:
    assert sizes(f"{LINE}\r\nübrig\r\n".encode(coding)) == [(900, 500)]


def test_a_compressed_log_is_read_and_one_that_ends_early_says_so() -> None:
    raw = gzip.compress(b"x\n" * 1000) + gzip.compress(f"{LINE}\n".encode())
    assert sizes(raw) == [(900, 500)]
    assert "compressed" in one(gzip.compress(f"{LINE}\nmore\n".encode())[:-4]).notes[-1]


def test_bytes_that_are_no_text_are_passed_over() -> None:
    assert sizes(b"\xff\xfe\x00\xd8\n\x80\x80\n" + b"\x00" * 99 + LINE.encode() + b"\n\xc3\n")[:1] != [(9, 9)]
    assert sizes(b"a\xff\xfe\n" + b"\x00" * 99 + LINE.encode() + b"\n\xc3\n") == [(900, 500)]


def test_pods_are_engines_of_their_own() -> None:
    text = f"[pod/glm-prefill-0/sglang] {LINE}\n[pod/glm-decode-0/sglang] {LINE.replace('900', '700')}\n"
    assert [(e.source, e.kv_pool_tokens) for e in engines(text, "k.log")] == [
        ("k.log (prefill)", 900),
        ("k.log (decode)", 700),
    ]
    same = text.replace("prefill", "a").replace("decode", "b")
    assert [e.source for e in engines(same, "k.log")] == ["k.log (pod/glm-a-0/sglang)", "k.log (pod/glm-b-0/sglang)"]


def test_files_that_tail_prints_one_behind_the_other_are_engines_of_their_own() -> None:
    text = f"==> prefill.log <==\n{LINE}\n\n==> decode.log <==\n{LINE.replace('900', '700')}\n"
    assert [(e.source, e.kv_pool_tokens) for e in engines(text, "-")] == [("- (prefill)", 900), ("- (decode)", 700)]


@pytest.mark.parametrize("end", range(1, 90))
def test_a_number_at_the_end_of_a_log_that_was_cut_is_none(end: int) -> None:
    cut = LINE[: LINE.index("context_len") + len("context_len=500")][:-end] if end < 60 else LINE[:-end]
    for pool, context in sizes(cut):
        assert pool in (None, 900)
        assert context in (None, 500)


@pytest.mark.parametrize("width", range(20, 120))
def test_a_number_that_a_terminal_broke_over_two_lines_is_none(width: int) -> None:
    text = LINE.replace("900", "131072").replace("500", "1048576")
    broken = "\n".join(text[i : i + width] for i in range(0, len(text), width)) + "\n"
    for pool, context in sizes(broken):
        assert pool in (None, 131072)
        assert context in (None, 1048576)


def test_a_record_that_was_wrapped_is_whole_again() -> None:
    assert sizes(
        "[TP0] max_total_num_tokens=900, chunked_prefill_size=4096,\n  max_prefill_tokens=1,\n  context_len=500\n"
    ) == [(900, 500)]
    assert sizes("[TP0] KV Cache is allocated. dtype: torch.bfloat16,\n#tokens: 900, K size: 2 GB\n") == [(900, None)]


def test_another_ranks_record_is_no_rest_of_one() -> None:
    text = "[2026-01-01 00:00:09 DP0] max_total_num_tokens=900,\n[2026-01-01 00:00:09 DP1] context_len=500\n"
    assert [pair for pair in sizes(text) if pair != (None, None)] == [(900, None)]


def test_a_record_that_another_one_was_written_into_is_none() -> None:
    assert sizes(f"{LINE[:80]}{LINE}\n") == []
