"""What collectors put around a line in JSON or in front of it, and what a cut at a column leaves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.engine.logs.reading import engines, sizes

LINE = "[2026-01-01 00:00:09 TP0] max_total_num_tokens=900, context_len=500, available_gpu_mem=1.00 GB"


@pytest.mark.parametrize(
    "front",
    [
        "Nov 04 03:11:43 sglang[21833]: ", "Nov 30 22:45:34.123456 gpu01 sglang[1]: ", "0: ", "12: ", " 3: ",
        "Mon 2026-11-30 22:45:34 UTC gpu01 sglang.service[1]: ", "1796078734.123456 gpu01 sglang[1]: ",
        "[   12.345678] gpu01 sglang[1]: ", "[   12.345678 <    0.000123 >] gpu01 sglang[1]: ",
        "2026-11-30T22:45:34+00:00 sglang[1]: ", "<30>Nov 30 22:45:34 gpu01 sglang[1]: ",
        "<165>1 2026-11-30T22:45:34.003Z gpu01 sglang 12 ID47 - ",
    ],
)  # fmt: skip
def test_what_journald_syslog_and_slurm_put_in_front_is_taken_off(front: str) -> None:
    assert sizes(f"{front}{LINE}\n") == [(900, 500)]


@pytest.mark.parametrize(
    "record",
    [
        {"line": LINE, "labels": {"pod": "a"}}, {"textPayload": LINE}, {"jsonPayload": {"message": LINE}},
        {"_source": {"message": LINE}}, {"event": {"original": LINE}}, {"event.original": LINE}, {"@message": LINE},
        {"attributes": {"message": LINE}}, {"fields": {"message": [LINE]}}, {"MESSAGE": list(LINE.encode())},
        {"events": [{"timestamp": 1796078734000, "message": LINE}]}, [{"textPayload": LINE}],
        {"data": {"result": [{"stream": {"pod": "a"}, "values": [["1796078734000000000", LINE]]}]}},
    ],
)  # fmt: skip
def test_a_collectors_json_is_read(record: Any) -> None:
    assert sizes(json.dumps(record) + "\n") == [(900, 500)]


@pytest.mark.parametrize("name", ["messages", "prompt", "text", "input_ids", "obj", "rid"])
def test_json_of_a_request_holds_no_line_of_the_engines(name: str) -> None:
    assert sizes(json.dumps({"message": LINE, name: "x"}) + "\n") == []


def test_a_line_of_json_that_was_cut_makes_the_answer_unknown() -> None:
    whole = json.dumps({"log": LINE}) + "\n"
    assert sizes(whole + json.dumps({"log": LINE.replace("900", "700")})[:-20] + "\n") == [(None, None)]


def test_pods_in_json_are_engines_of_their_own() -> None:
    lines = [{"line": LINE, "labels": {"pod": pod}} for pod in ("a", "b")]
    assert len(engines("".join(json.dumps(line) + "\n" for line in lines))) == 2


def args(node: int, port: int = 30000, second: int = 0) -> str:
    settings = f"server_args=ServerArgs(model_path='m', port={port}, nnodes=2, node_rank={node})"
    return f"[2026-01-01 00:00:0{second}] {settings}\n"


def test_the_nodes_of_one_engine_are_one_engine_and_other_servers_are_not() -> None:
    assert sizes(args(0) + args(1) + LINE + "\n") == [(900, 500)]
    assert sizes(args(0) + args(1, port=1) + LINE + "\n") == [(None, None)]


def test_a_node_that_begins_long_behind_the_others_is_of_another_start() -> None:
    later = args(1).replace("00:00:00", "05:00:00")
    assert sizes(args(0) + later + LINE.replace("00:00:09", "05:00:09") + "\n") == [(None, None)]


def test_a_number_at_the_column_where_a_log_was_cut_is_none() -> None:
    start = "[2026-01-01 00:00:09 TP0] max_total_num_tokens=900, context_len="
    other = f"[2026-01-01 00:00:01] server_args=ServerArgs(model_path='{'m' * 99}')"
    width = len(start) + 3
    assert sizes(f"{other[:width]}\n{start}131072, x=1"[: 2 * width + 1] + "\n") == [(900, None)]
    assert sizes(f"{start}131\n") == [(900, 131)]
