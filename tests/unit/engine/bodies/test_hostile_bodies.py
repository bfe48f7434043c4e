"""Whatever a body holds, an answer comes back, and what it says is in it."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvfence.domain.diagnosis.seen import EngineSeen
from kvfence.engine.bodies import read
from kvfence.engine.bodies.metrics import metrics
from tests.unit.engine.bodies.recorded import KEY, loads, models, server_info

LOADED = settings(max_examples=50, deadline=None)
"""A machine under load may take a second for one example."""

NAMES = sorted({*server_info(), *loads(1), *models(), "data", "memory_usage", "token_capacity", "workers", "dp_rank"})
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(4096)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=4), inner),
    max_leaves=20,
)
SECRETS = st.sampled_from(["api_key", "admin_api_key", "ssl_keyfile_password", "auth_token", "db_password"])


@LOADED
@given(ANYTHING)
def test_any_json_is_read_without_a_crash(value: Any) -> None:
    read(json.dumps(value).encode(), "s")


@LOADED
@given(st.dictionaries(st.sampled_from(NAMES), ANYTHING, max_size=4))
def test_parts_of_an_answer_may_be_anything(changes: dict[str, Any]) -> None:
    found = read(json.dumps({**server_info(), **changes}).encode(), "s")
    assert found
    for one in found:
        if isinstance(one, EngineSeen):
            assert one.kv_pool_tokens is None or one.kv_pool_tokens > 0
            assert one.context_fits in (None, True, False)


@LOADED
@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_a_crash(raw: bytes) -> None:
    read(raw, "s")
    metrics(raw)


@LOADED
@given(st.lists(st.integers(1, 2**40), min_size=1, max_size=6), st.integers(1, 2**40))
def test_no_row_holds_a_pool_that_is_in_no_answer(pools: list[int], context: int) -> None:
    found = read(json.dumps(server_info(ranks=tuple(pools), context_length=context)).encode(), "s")
    assert found is not None
    rows = [one for one in found if isinstance(one, EngineSeen)]
    assert sorted(one.kv_pool_tokens or 0 for one in rows) == sorted(pools)
    assert [one.context_fits for one in rows] == [pool >= context for pool in pools]


@LOADED
@given(SECRETS, SCALARS, st.sampled_from(["top", "nested", "listed", "text"]))
def test_a_key_never_comes_out_wherever_it_stands(name: str, beside: Any, where: str) -> None:
    holds: Any = {name: KEY, "beside": beside}
    body = server_info()
    if where == "top":
        body |= holds
    else:
        body["extra_config"] = {"nested": {"a": holds}, "listed": [[holds]], "text": json.dumps(holds)}[where]
    found = read(json.dumps(body).encode(), "s")
    assert found is not None
    for one in found:
        assert isinstance(one, EngineSeen)
        assert KEY not in repr(one) + repr(dict(one.settings)) + repr(one.notes)
        assert one.keys_shown


LONG = 100_000


@pytest.mark.parametrize(
    "text",
    [
        "a" * LONG,
        "-" * LONG,
        "--token" + " " * LONG,
        "a://" * (LONG // 4),
        "a://:" * (LONG // 5),
        "sk-" * (LONG // 3),
        "--token " * (LONG // 8),
        "--a-token-" * (LONG // 10),
        "watermark" * (LONG // 9),
        "[" * LONG,
        json.dumps(json.dumps(json.dumps(json.dumps("\\" * 1000)))),
    ],
)
def test_no_text_takes_long_to_look_through(text: str) -> None:
    body = {**server_info(), "one": text, "two": {text: text}, "three": json.dumps([text]), text: 1}
    began = time.process_time()
    read(json.dumps(body).encode(), "s")
    metrics(f'vllm:cache_config_info{{{text[:60_000]}="1"}} 1.0\n'.encode())
    assert time.process_time() - began < 3
