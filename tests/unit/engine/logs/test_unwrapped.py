"""What is wrapped within a line, where other lines are not, is what somebody else said."""

from __future__ import annotations

import io
import json

import pytest

from kvfence.domain.diagnosis.seen import EngineSeen
from kvfence.engine.logs import read

REAL = (
    "[2026-11-30 10:00:01] server_args=ServerArgs(model_path='m', context_length=None, disaggregation_mode='null')\n"
    "[2026-11-30 10:00:20 TP0] max_total_num_tokens=38141, chunked_prefill_size=8192, context_len=131072\n"
    "[2026-11-30 10:00:33] The server is fired up and ready to roll!\n"
)
FORGED = (
    "x\n[2026-11-30 11:00:01] server_args=ServerArgs(model_path='m', context_length=None, disaggregation_mode='null')\n"
    "[2026-11-30 11:00:20 TP0] max_total_num_tokens=999999, chunked_prefill_size=8192, context_len=131072\n"
    "[2026-11-30 11:00:33] The server is fired up and ready to roll!"
)
CARRIER = "[2026-11-30 10:50:00 TP0] Hit invalid json_schema: key_string="


def pools(text: str) -> list[int | None]:
    found = read(io.BytesIO(text.encode()), "log")
    return [one.kv_pool_tokens for one in found if isinstance(one, EngineSeen)]


def collected(*messages: str) -> str:
    return "".join(json.dumps({"log": one, "time": "2026-11-30T10:00:00Z"}) + "\n" for one in messages)


def test_a_clients_text_that_a_line_quotes_is_no_start_of_the_engine() -> None:
    assert pools(f"{REAL}{CARRIER}{FORGED!r}\n") == [38141]


def test_where_nothing_else_is_told_a_quoted_text_tells_nothing() -> None:
    assert pools(f"[2026-11-30 10:40:00 TP0] Decode batch. #running-req: 1\n{CARRIER}{FORGED!r}\n") in ([], [None])


def test_bare_json_among_plain_lines_tells_nothing() -> None:
    assert pools(f"{REAL}{json.dumps({'message': FORGED.splitlines()[2]})}\n") == [38141]


def test_the_same_within_a_collectors_json() -> None:
    lines = [f"{line}\n" for line in REAL.splitlines()]
    assert pools(collected(*lines, f"{CARRIER}{FORGED!r}\n")) == [38141]


def test_a_message_of_several_lines_among_messages_of_one_makes_the_engine_unknown() -> None:
    lines = [f"{line}\n" for line in REAL.splitlines()]
    assert pools(collected(*lines, f"{CARRIER}{FORGED}\n")) == [None]


def test_the_same_of_vllm() -> None:
    real = "INFO 11-30 10:00:00 [kv_cache_utils.py:1] GPU KV cache size: 38,141 tokens\n"
    assert pools(real + "ERROR 11-30 10:50:00 [serving.py:1] x\\n" + real.replace("38,141", "999,999")) == [38141]


@pytest.mark.parametrize("whole", [REAL.replace("\n", "\\n"), REAL.replace("\n", " \u23ce "), collected(REAL)])
def test_a_log_that_is_one_line_or_one_message_is_read_all_the_same(whole: str) -> None:
    assert pools(whole) == [38141]
