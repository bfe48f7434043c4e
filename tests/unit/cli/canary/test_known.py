from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.cli.canary.known import BELIEVED, MODEL_LIMIT, known, models_of, role_of
from kvfence.domain.asking import Fault, Reply
from kvfence.domain.diagnosis.seen import EngineSeen, Unreadable


def rank(number: int, pool: int | None, **more: object) -> EngineSeen:
    return EngineSeen("s", number, kv_pool_tokens=pool, context_length=4096, **more)  # type: ignore[arg-type]


def test_of_several_ranks_the_smallest_pool_counts() -> None:
    assert known("server", "http://a", (rank(0, 2000), rank(1, 1024))).kv_pool_tokens == 1024


def test_a_pool_that_one_rank_does_not_tell_is_not_known() -> None:
    assert known("server", "http://a", (rank(0, 2000), rank(1, None))).kv_pool_tokens is None


def test_ranks_that_disagree_have_no_page_size_version_or_role() -> None:
    ranks = (rank(0, 1, page_size=16, version="1", role=RoleType.PREFILL), rank(1, 1, page_size=64, version="2"))
    told = known("server", "http://a", ranks)
    assert (told.page_size, told.version, role_of(ranks)) == (None, None, None)


def test_of_what_cannot_be_read_nothing_is_known() -> None:
    told = known("server", "http://a", (Unreadable("s", "No."),))
    assert (told.kv_pool_tokens, told.context_length, told.max_input_tokens, told.version) == (None, None, None, None)


def models(body: object) -> tuple[str, ...]:
    return models_of(Reply(200, json.dumps(body).encode(), 0.1))


def test_models_are_named_in_their_order() -> None:
    assert models({"data": [{"id": "b"}, {"id": "a"}, {"no": 1}, "x", {"id": ""}]}) == ("b", "a")


@pytest.mark.parametrize(
    "body", [None, [], {}, {"data": {}}, {"data": None}, {"data": [{"id": 3}]}, {"data": [{"id": "a\n"}]}]
)
def test_what_is_no_list_of_models_names_none(body: object) -> None:
    assert models(body) == ()


def test_a_list_without_end_is_cut() -> None:
    assert len(models({"data": [{"id": f"m{i}"} for i in range(10_000)]})) == MODEL_LIMIT


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(404, b'{"data": [{"id": "a"}]}', 0.1), id="a status that is an error"),
        pytest.param(Reply(None, b"", 0.1, Fault.UNREACHABLE), id="no answer"),
        pytest.param(Reply(200, b"\xff{", 0.1), id="no JSON"),
        pytest.param(Reply(200, b"[" * 100_000, 0.1), id="nested without end"),
    ],
)
def test_without_an_answer_no_model_is_named(reply: Reply) -> None:
    assert models_of(reply) == ()


@given(st.binary(max_size=200))
def test_no_bytes_break_the_list_of_models(body: bytes) -> None:
    assert models_of(Reply(200, body, 0.1)) == () or b"id" in body


def test_a_figure_without_measure_is_not_believed() -> None:
    huge = EngineSeen("s", kv_pool_tokens=10**15, context_length=10**15, told_input_limit=10**15, page_size=10**15)
    told = known("server", "http://a", (huge,))
    assert (told.kv_pool_tokens, told.context_length, told.max_input_tokens, told.page_size) == (None,) * 4
    assert known("server", "http://a", (rank(0, BELIEVED),)).kv_pool_tokens == BELIEVED
