"""What users write into a log is not the engine's; and no log, however long or wild, takes the reader down."""

from __future__ import annotations

import io
import time
import tracemalloc
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvfence.domain.diagnosis.seen import EngineSeen
from kvfence.engine.logs import read
from tests.fuzz.bench import bench
from tests.unit.engine.logs.reading import engines, one, seen, sizes

LINE = (
    "[2026-01-01 00:00:09 TP0] max_total_num_tokens=900, chunked_prefill_size=8192, "
    "context_len=500, available_gpu_mem=1.00 GB\n"
)
READY = "[2026-01-01 00:00:10] The server is fired up and ready to roll!\n"
FORGED = "max_total_num_tokens=9, context_len=9, available_gpu_mem=1 GB"


@pytest.mark.parametrize(
    "line",
    [
        f"[2026-01-01 00:00:11] Receive: obj=GenerateReqInput(rid='a', text='{FORGED}')",
        f"[2026-01-01 00:00:11] Finish: obj=GenerateReqInput(text='\\n{FORGED}\\n'), out={{}}",
        f'INFO:     127.0.0.1:5000 - "GET /?{FORGED} HTTP/1.1" 200 OK',
        f'INFO:     127.0.0.1:5000 - "GET /\u23ce {FORGED} \u23ce HTTP/1.1" 200 OK',
        f"INFO 10-10 12:00:14 [logger.py:39] Received request cmpl-1: prompt: '\\n{FORGED}\\n'",
        f'{{"event": "request.received", "obj": {{"text": "{FORGED}", "log": "{FORGED}"}}}}',
        f"[2026-01-01 00:00:11 TP0] Prompt: {FORGED}",
        f"[2026-01-01 00:00:11] Receive: obj=GenerateReqInput(text='a\n{FORGED}\n')",
        f"see {FORGED}",
    ],
)
def test_a_users_words_are_not_the_engines(line: str) -> None:
    assert sizes(f"{LINE}{READY}{line}\n") == [(900, 500)]
    assert all(pair in ((900, 500), (None, None)) for pair in sizes(f"{line}\n{LINE}{READY}"))


def test_a_users_words_make_no_failure() -> None:
    text = (
        f"{LINE}{READY}[2026-01-01 00:00:11] Receive: obj=GenerateReqInput(text='\nScheduler hit an exception: \n')\n"
    )
    assert one(text).started is True


def test_bare_lines_behind_readiness_are_not_the_engines_when_it_marks_its_own() -> None:
    assert sizes(f"{LINE}{READY}{FORGED}\n") == [(900, 500)]


def test_in_a_log_of_one_line_what_stands_behind_a_users_words_makes_the_answer_unknown() -> None:
    parts = [LINE.strip(), READY.strip(), "[2026-01-01 00:00:11] Receive: obj=GenerateReqInput(text='a", FORGED, "b')"]
    engine = one(" \u23ce ".join(parts) + "\n")
    assert (engine.kv_pool_tokens, engine.started) == (None, None)
    assert "user" in engine.notes[0]


def test_keys_in_settings_are_struck_out_and_named() -> None:
    engine = one(
        "server_args=ServerArgs(model_path='m', tokenizer_path='t', api_key='sk-1, x=2)', admin_api_key=None, "
        "ssl_keyfile_password='pw', max_total_tokens=5, hf={'hf_token': 'h'}, port=30000)\n"
    )
    assert engine.keys_shown == ("api_key", "hf_token", "ssl_keyfile_password")
    assert dict(engine.settings) == {
        "model_path": "m",
        "tokenizer_path": "t",
        "max_total_tokens": 5,
        "hf": {},
        "port": 30000,
    }
    assert not any(secret in repr(engine) + repr(engine.settings) for secret in ("sk-1", "'pw'", "'h'"))


def test_masked_keys_are_not_shown() -> None:
    assert one("server_args=ServerArgs(api_key='***', admin_api_key='', port=1)\n").keys_shown == ()


def test_settings_that_end_in_the_middle_are_read_as_far_as_they_go() -> None:
    assert dict(one("server_args=ServerArgs(port=30000, api_key='sk-1").settings) == {"port": 30000}
    assert engines("server_args=ServerArgs(port=300") == []


class Endless(io.RawIOBase):
    """A log of so many megabytes without a line end."""

    def __init__(self, first: bytes, megabytes: int) -> None:
        self._parts = iter([first, *([b"x" * 1_000_000] * megabytes), b"\n" + READY.encode()])

    def read(self, size: int = -1) -> bytes:
        return next(self._parts, b"")


def test_a_line_of_a_hundred_megabytes_takes_no_more_memory_than_a_short_one() -> None:
    stream: BinaryIO = Endless(LINE.encode(), 100)  # type: ignore[assignment]
    tracemalloc.start()
    try:
        (engine,) = read(stream, "long")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(engine, EngineSeen)
    assert (engine.kv_pool_tokens, engine.started) == (900, True)
    assert most < 32_000_000


def test_more_lines_of_a_start_than_are_kept_are_no_answer_unless_the_last_start_is_among_them() -> None:
    text = "".join(LINE.replace("900", str(900 + i % 3)) for i in range(4_500))
    engine = one(text)
    assert (engine.kv_pool_tokens, engine.started) == (None, None)
    assert "cut it down" in engine.notes[0]
    later = LINE.replace("00:00:09", "00:10:09")
    assert sizes(f"{text}[2026-01-01 00:10:00 TP0] Load weight begin.\n{later}") == [(900, 500)]


def test_millions_of_names_are_refused() -> None:
    assert "processes" in getattr(seen("".join(f"[pod/a{i}/b] {LINE}" for i in range(600)))[0], "why", "")


@pytest.mark.parametrize(
    "wild",
    [
        *("[" * 50_000, "{" * 50_000, '{"log":' * 10_000, "> " * 50_000, "a.b." * 20_000, "0%|" * 20_000),
        *("1," * 50_000, "1" + ",111" * 20_000, " " * 300_000, "x" * 300_000 + " y", "1 " * 100_000, "a=1, " * 60_000),
    ],
    ids=range(12),
)
def test_no_line_takes_long(wild: str) -> None:
    begun = time.process_time()
    seen(f"{wild}max_total_num_tokens=9\n" * 3)
    seen(f"max_total_num_tokens={wild}\n" * 3)
    seen(f"server_args=ServerArgs(a={wild}\n" * 3)
    seen(f"x {wild} max_total_num_tokens=1")
    assert time.process_time() - begun < 3


@given(st.binary(max_size=400), st.integers(0, 200))
def test_no_bytes_take_the_reader_down(raw: bytes, at: int) -> None:
    seen(raw)
    line = LINE.encode()
    for engine in engines(line[:at] + raw + line[at:]):
        assert engine.kv_pool_tokens is None or 0 < engine.kv_pool_tokens < 2**53


def test_the_bench_reads_what_it_wrote() -> None:
    assert "MB/s" in bench(2)
