"""What the fuzz found, one case of each kind."""

from __future__ import annotations

import json

import pytest

from tests.unit.engine.logs.reading import engines, one, sizes

STAMP = "[2026-01-01 00:00:09 TP0] "
SUMMARY = f"{STAMP}max_total_num_tokens=900, context_len=131072, available_gpu_mem=1.00 GB"
WINDOWS = f"{STAMP}KV Cache is allocated. #tokens: 300288, K size: 8.38 GB, V size: 5.59 GB"
FAILED = "2026-09-23T08:13:08Z RuntimeError: Rank 0 scheduler died during initialization (exit code: -3)."


@pytest.mark.parametrize("number", ["3753...", "375,\u2026", "375,>", "37536\u2026", ""])
def test_a_size_that_was_cut_off_says_that_another_one_is_not_it(number: str) -> None:
    line = f"{STAMP}Use sliding window memory pool. full_layer_tokens={number}"
    assert sizes(f"{line}\n{WINDOWS}\n") == [(None, None)]
    assert sizes(f"{WINDOWS}\n{line}") == [(None, None)]


@pytest.mark.parametrize("front", ["[pod/x-0/main] ", "sglang-1  | ", "Nov 30 22:45:34 gpu01 sglang[1234]: ", "4:"])
def test_a_progress_bar_does_not_hide_whose_the_record_behind_it_is(front: str) -> None:
    text = (
        f"{front}  8%|8         | 1/13 [00:01<00:12, 1.00it/s]{SUMMARY}\n{front}{STAMP}Memory pool end. avail mem=1\n"
    )
    assert sizes(text) == [(900, 131072)]


@pytest.mark.parametrize("front", ["", "7:", "    7\t", "glm-7d9f-abc sglang "])
@pytest.mark.parametrize(
    "rest",
    ["072, available_gpu_mem=1.00 GB", "072", "072, KV size: 1.00 GB", ",072, x=1", "\u202f072\u202f9, x=1", "'072'9"],
)
def test_the_rest_of_a_number_in_the_next_line_makes_it_none(front: str, rest: str) -> None:
    lines = [f"{front}{STAMP}max_total_num_tokens=900, context_len=131", f"{front}{rest}"]
    for text in ("\n".join(lines) + "\n", json.dumps({"log": "\n".join(lines)}) + "\n", "\n\n\n".join(lines) + "\n"):
        assert [context for _, context in sizes(text)] == [None]


def test_groups_of_digits_at_the_end_of_a_cut_log_are_no_number() -> None:
    assert sizes(f"{STAMP}Load weight begin.\nmax_total_num_tokens=1 256 440")[0][0] is None


def test_what_cannot_be_read_long_after_a_failure_is_of_another_start() -> None:
    later = "2026-09-23T08:24:42Z [2026-09-23 08:24:42 DP0 TP0] max_total_num_tok"
    assert one(f"{FAILED}\n").started is False
    assert [engine.started for engine in engines(f"{FAILED}\n{later}\n")] == [None]


def test_colours_that_came_through_json_are_taken_off() -> None:
    assert sizes(json.dumps({"log": f"\x1b[32m{STAMP}\x1b[0m{SUMMARY.removeprefix(STAMP)}"}) + "\n") == [(900, 131072)]


def test_a_log_of_one_line_may_name_its_process_once_or_in_each_part() -> None:
    first = f"[pod/x/main] {STAMP}Load weight begin."
    for second in (SUMMARY, f"[pod/x/main] {SUMMARY}"):
        assert sizes(f"{first} \u23ce {second}\n") == [(900, 131072)]


def test_a_second_of_disorder_is_not_newest_first() -> None:
    first, last = (f"{STAMP}DSV4 pool sizes: full={n}, swa=9, c4=9" for n in (209280, 32768))
    found = sizes(f"{first}\n{last}\n[2026-01-01 00:00:08 TP1] Memory pool end. avail mem=1 GB\n")
    assert found[0][0] in (None, 32768)


def test_a_start_whose_lines_tell_two_clocks_is_put_in_order() -> None:
    new = f"2026-09-23T08:24:42Z {SUMMARY.replace('2026-01-01 00:00:09', '2026-09-23 08:24:42')}"
    engine = one(f"[2024-01-01 00:00:00] Load weight begin.\n{FAILED}\n{new}\n")
    assert (engine.started, engine.kv_pool_tokens) == (True, 900)


def test_an_exception_of_which_no_start_is_seen_is_no_failed_start() -> None:
    assert one(f"{STAMP}Scheduler hit an exception: Traceback (most recent call last):\n").started is None


def test_several_starts_in_no_order_with_bare_lines_are_no_answer() -> None:
    first = SUMMARY.replace("900", "555")
    text = f"[2026-01-02 00:00:00 TP0] Load weight begin.\n{first}\nserver_args=ServerArgs(port=1)\n"
    assert one(f"{text}[2026-01-02 00:01:00 TP0] Load weight begin.\n{first}\n").kv_pool_tokens is None


def test_a_number_of_thousands_of_digits_is_none() -> None:
    assert sizes(f"max_total_num_tokens=1{',111' * 300}, context_len=5, x=1\n") == [(None, None)]


def test_a_bare_record_behind_the_names_of_pod_and_container_is_theirs() -> None:
    old = f"glm-7d9f sglang {SUMMARY.replace('900', '555')}\n"
    mark = "glm-7d9f sglang server_args=ServerArgs(port=1)\n"
    text = f"{old}{mark}glm-7d9f sglang max_total_num_tokens=900, context_len=5\n"
    assert sizes(text) == [(900, 5)]


def test_marked_records_behind_a_users_words_in_one_message_make_the_answer_unknown() -> None:
    old = f"{SUMMARY}\n{STAMP}The server is fired up and ready to roll!\n"
    words = f"{STAMP}Receive: obj=GenerateReqInput(text='a')\n"
    new = f"{STAMP}Load weight begin.\n{SUMMARY.replace('900', '700')}\n"
    assert [pool for pool, _ in sizes(json.dumps({"log": old + words + new}) + "\n")] == [None]
    assert sizes(json.dumps({"log": old + words + "max_total_num_tokens=9, context_len=9\n"}) + "\n") == [(900, 131072)]


@pytest.mark.parametrize("coding", ["utf-16-le", "utf-16-be"])
def test_wide_text_behind_a_hole_is_not_read_as_narrow(coding: str) -> None:
    text = f"\0\0\0\n{STAMP}max_total_num_tokens=7\u202f650\u202f496, context_len=65\u202f536, x=1\n"
    assert sizes(text.encode(coding)) in ([], [(None, None)])


def test_a_bare_mark_of_a_start_behind_a_users_words_makes_the_answer_unknown() -> None:
    first = f"{SUMMARY}\n{STAMP}The server is fired up and ready to roll!\n"
    words = f"{STAMP}Receive: obj=GenerateReqInput(text='a')\n"
    assert [engine.started for engine in engines(f"{first}{words}server_args=ServerArgs(port=1)\n")] == [None]
