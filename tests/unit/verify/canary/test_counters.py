from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvfence.domain.asking import Fault, Reply
from kvfence.verify.canary.counters import Counted, counted, read
from kvfence.verify.canary.session import Budget, Session
from kvfence.verify.canary.stand_in import Shape
from tests.unit.verify.canary.spoiled import Spoiled

PAGE = b"""# HELP sglang:num_requests_total Number of requests processed.
# TYPE sglang:num_requests_total counter
sglang:num_requests_total{engine_type="prefill",is_streaming="false",model_name="tiny"} 7.0
sglang:num_requests_total{engine_type="prefill",is_streaming="true",model_name="t} 9"} 2.0
sglang:num_requests_total_created{model_name="tiny"} 1.7935e+09
sglang:prompt_tokens_total{is_streaming="false",model_name="tiny"} 1.1e+03
sglang:num_aborted_requests_total{model_name="tiny"} 3.0
"""


def test_the_counters_of_sglang_are_summed_over_their_labels() -> None:
    assert counted(PAGE) == Counted(9, 1100)


def test_the_counters_of_vllm_are_read() -> None:
    page = (
        b'vllm:request_success_total{engine="0",finished_reason="stop"} 4\n'
        b'vllm:request_success_total{engine="0",finished_reason="length"} 1.0 1793500000\r\n'
        b"vllm:prompt_tokens_total 77\n"
    )
    assert counted(page) == Counted(5, 77)


def test_a_page_that_counts_no_tokens_still_counts_requests() -> None:
    assert counted(b"sglang:num_requests_total 1\n") == Counted(1)


@pytest.mark.parametrize(
    "value", ["NaN", "+Inf", "-1.0", "1.5", "seven", "", "1e400", "9007199254740992", "--1", "0x10"]
)
@pytest.mark.parametrize("name", ["sglang:num_requests_total", "sglang:prompt_tokens_total"])
def test_a_value_that_is_no_count_makes_the_page_say_nothing(name: str, value: str) -> None:
    assert counted(PAGE + f'{name}{{x="y"}} {value}\n'.encode()) is None


@pytest.mark.parametrize(
    "page",
    [
        b"",
        b"\xff\xfe\x00",
        b"sglang:prompt_tokens_total 1\n",
        b"my:sglang:num_requests_total 1\nsglang:prompt_tokens_total_x 1\n",
        PAGE + b"vllm:request_success_total 5\n",
        PAGE + b"vllm:prompt_tokens_total 5\n",
    ],
)
def test_a_page_without_just_one_engine_s_counters_says_nothing(page: bytes) -> None:
    assert counted(page) is None


@given(st.binary(max_size=300))
def test_any_page_is_read_or_says_nothing(page: bytes) -> None:
    counted(b"sglang:num_requests_total" + page)
    assert counted(PAGE + b"\n#" + page.replace(b"\n", b"")) == Counted(9, 1100)


def session_to(caller: Spoiled) -> Session:
    return Session(caller, caller.target, Budget(100, 100, 0), random.Random(1))


def of(replies: dict[str, Reply]) -> Counted | None:
    caller = Spoiled(Shape.ROUTER, replied=lambda url, _reply: replies[url.removeprefix("http://prefill-1.example")])
    return asyncio.run(read(session_to(caller), "http://prefill-1.example", 2))


def test_the_page_is_found_where_sglang_has_it_behind_a_redirection() -> None:
    assert of({"/metrics": Reply(307, b"", 0.1), "/metrics/": Reply(200, PAGE, 0.1)}) == Counted(9, 1100)


@pytest.mark.parametrize(
    "reply",
    [
        *(Reply(status, PAGE, 0.1) for status in (204, 401, 404, 500)),
        Reply(307, b"", 0.1),
        Reply(None, b"", 2.0, Fault.TIMED_OUT),
        Reply(200, b"", 0.1, Fault.TOO_LARGE),
        Reply(307, b"", 0.1, Fault.MALFORMED),
    ],
)
def test_a_page_that_is_not_there_says_nothing(reply: Reply) -> None:
    assert of({"/metrics": reply, "/metrics/": reply}) is None


def test_the_stand_in_has_such_a_page() -> None:
    assert asyncio.run(read(session_to(Spoiled(Shape.SERVER)), "http://server.example", 2)) == Counted(0, 0)
