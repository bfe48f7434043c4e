from __future__ import annotations

import json
from typing import Any

import pytest

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.diagnosis.seen import EngineSeen, Product, RouterSeen, Unreadable
from kvfence.engine.bodies import BODY_LIMIT, read
from tests.unit.engine.bodies.recorded import (
    DECODE,
    KEY,
    PREFILL,
    ROUTER_MODELS,
    SMG_MODELS,
    loads,
    models,
    raw,
    router_workers,
    server_info,
    smg_workers,
)


def engines(body: dict[str, Any] | list[Any]) -> tuple[EngineSeen, ...]:
    found = read(raw(body), "s")
    assert found is not None
    assert all(isinstance(one, EngineSeen) for one in found)
    return tuple(one for one in found if isinstance(one, EngineSeen))


def engine(**changes: Any) -> EngineSeen:
    (one,) = engines(server_info(**changes))
    return one


def test_a_whole_answer_of_today_is_read() -> None:
    one = engine()
    assert (one.kv_pool_tokens, one.context_length, one.told_input_limit) == (4096, 4096, 4090)
    assert (one.version, one.role, one.page_size, one.reserved_decode_tokens) == ("0.5.23", RoleType.UNIFIED, 1, 512)
    assert (one.rank, one.ranks_untold, one.notes) == (None, 0, ())


@pytest.mark.parametrize(
    ("said", "role"),
    [("prefill", RoleType.PREFILL), ("decode", RoleType.DECODE), ("null", RoleType.UNIFIED), (None, None), ("x", None)],
)
def test_the_role_is_what_is_said_and_the_word_null_is_a_server_alone(said: str | None, role: RoleType | None) -> None:
    assert engine(disaggregation_mode=said).role is role


def test_each_rank_of_data_parallelism_has_a_row_with_its_own_pool() -> None:
    told = engines(server_info(ranks=(4096, 3000, 5000)))
    assert [(one.rank, one.kv_pool_tokens, one.context_fits) for one in told] == [
        (0, 4096, True),
        (1, 3000, False),
        (2, 5000, True),
    ]
    assert [one.told_input_limit for one in told] == [4090, None, None]


def test_loads_tell_each_rank() -> None:
    told = engines(loads(4096, 2048))
    assert [(one.rank, one.kv_pool_tokens, one.version) for one in told] == [(0, 4096, "0.5.23"), (1, 2048, "0.5.23")]


def test_with_dp_attention_one_figure_is_that_of_all_ranks() -> None:
    told = engines(server_info(ranks=(4096,), dp_size=8, enable_dp_attention=True))
    assert [(one.rank, one.kv_pool_tokens, one.told_input_limit, one.ranks_untold) for one in told] == [
        (rank, 4096, 4090, 0) for rank in range(8)
    ]
    assert any("DP attention" in note for note in told[0].notes)


@pytest.mark.parametrize(("ranks", "top"), [((4096, 3000), 4096), ((4096,), 1)])
def test_figures_that_differ_are_not_those_of_all_ranks(ranks: tuple[int, ...], top: int) -> None:
    body = server_info(ranks=ranks, dp_size=8, enable_dp_attention=True)
    told = engines(body | {"max_total_num_tokens": top})
    assert sum(one.ranks_untold for one in told) == 8 - len(told)
    assert any("not told of" in note for note in told[0].notes)


def test_the_part_for_sliding_windows_is_no_pool() -> None:
    body = server_info()
    body["internal_states"][0]["memory_usage"]["token_capacity_swa"] = 512
    (one,) = engines(body)
    assert one.kv_pool_tokens == 4096


@pytest.mark.parametrize(
    ("pool", "limit", "changes", "context"),
    [
        (1000, 500, {}, 506),
        (1000, 993, {}, 999),
        (1000, 994, {}, None),  # the pool binds: the context may be anything from 1000 on
        (1000, 2000, {}, None),
        (1000, 500, {"dllm_algorithm": "LowConfidence"}, None),  # it takes off a block of its own
    ],
)
def test_a_context_is_worked_out_only_where_nothing_else_can_bind(
    pool: int, limit: int, changes: dict[str, Any], context: int | None
) -> None:
    one = engine(context_length=None, max_req_input_len=limit, ranks=(pool,), **changes)
    assert one.context_length == context
    assert one.notes


def test_no_context_is_worked_out_beside_a_pool_for_sliding_windows() -> None:
    body = server_info(context_length=None, max_req_input_len=500)
    body["internal_states"][0]["memory_usage"]["token_capacity_swa"] = 512
    (one,) = engines(body)
    assert one.context_length is None


def test_two_figures_for_one_pool_leave_none() -> None:
    body = server_info()
    body["max_total_num_tokens"] = 9999
    (one,) = engines(body)
    assert one.kv_pool_tokens is None
    assert any("4096, 9999" in note for note in one.notes)


def test_what_clients_are_told_is_the_context_and_a_difference_is_noted() -> None:
    (one,) = engines(server_info() | models(2048))
    assert one.context_length == 2048
    assert any("4096" in note for note in one.notes)


def test_a_shard_is_not_the_whole_pool() -> None:
    sharded: dict[str, Any] = {"enable_kv_cache_sharding": True, "context_length": 100_000}
    assert engine(**sharded, ranks=(1000,), max_req_input_len=3994).kv_pool_tokens == 4000
    assert engine(**sharded, ranks=(1000,), max_req_input_len=99_994).kv_pool_tokens is None
    assert engine(**sharded, ranks=(1000,), max_req_input_len=994).kv_pool_tokens == 1000


@pytest.mark.parametrize("wrong", ["4096", -1, 0, 1.5, True, [], {}, 2**60, 1e30])
def test_a_number_of_another_kind_is_not_told(wrong: object) -> None:
    body = {**server_info(), "max_total_num_tokens": wrong, "context_length": wrong, "internal_states": []}
    (one,) = engines(body)
    assert (one.kv_pool_tokens, one.context_length, one.context_fits) == (None, None, None)
    assert any("max_total_num_tokens" in note for note in one.notes)


def test_a_number_with_a_point_that_is_whole_counts() -> None:
    (one,) = engines({"max_total_num_tokens": 4096.0})
    assert one.kv_pool_tokens == 4096


@pytest.mark.parametrize("name", ["api_key", "admin_api_key", "ssl_keyfile_password", "hf_token", "my_secret"])
def test_a_key_in_clear_is_named_and_its_value_is_nowhere(name: str) -> None:
    one = engine(**{name: KEY})
    assert name in one.keys_shown
    assert KEY not in repr(dict(one.settings))
    assert KEY not in repr(one)
    assert one.settings["served_model_name"] == "tiny"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("launch_command", f"--port 1 --api-key {KEY}"),
        ("storage_extra_config", json.dumps({"access_key": KEY})),
        ("storage_extra_config", {"deep": [{"password": KEY}]}),
        ("endpoint", f"redis://user:{KEY}@host:1"),
        ("config", f"{{'api_key': '{KEY}', 'x': 1}}"),
        ("config", '[{"db_password": "' + KEY),
        ("argument", "hf_abcdefghijklmnopqrstuvwx"),
    ],
)
def test_a_key_within_another_setting_is_found(name: str, value: object) -> None:
    one = engine(**{name: value})
    assert name in one.keys_shown
    assert name not in one.settings
    assert KEY not in repr(dict(one.settings))


@pytest.mark.parametrize("in_text", [True, False])
def test_a_key_that_lies_deeper_than_anybody_looks_is_not_kept(in_text: bool) -> None:
    deep: Any = {"a": KEY}
    for _ in range(40):
        deep = [deep]
    one = engine(config=json.dumps(deep) if in_text else deep)
    assert "config" not in one.settings


@pytest.mark.parametrize("value", [None, "", "***", "<redacted>", "[REDACTED]", "xxxxx"])
def test_a_key_that_was_taken_out_is_not_shown(value: str | None) -> None:
    assert engine(api_key=value).keys_shown == ()


def test_names_that_only_sound_like_keys_are_settings() -> None:
    names = {
        "num_reserved_decode_tokens": 512,
        "speculative_token_map": "/m/map",
        "ssl_keyfile": "/etc/k",
        "x_tokens": 1,
    }
    one = engine(**names)
    assert one.keys_shown == ()
    assert names.items() <= dict(one.settings).items()


def test_several_answers_in_a_list_are_several_servers() -> None:
    told = read(raw([server_info(), {"what": 1}, models()]), "f")
    assert told is not None
    assert [one.source for one in told] == ["f [1]", "f [2]", "f [3]"]
    assert [type(one) for one in told] == [EngineSeen, Unreadable, EngineSeen]


@pytest.mark.parametrize(
    ("body", "product", "workers"),
    [
        (smg_workers(PREFILL, DECODE), Product.SMG, (PREFILL, DECODE)),
        (router_workers(PREFILL), Product.SGLANG_ROUTER, (PREFILL,)),
        (smg_workers(), None, ()),
        (SMG_MODELS, Product.SMG, ()),
        (ROUTER_MODELS, Product.SGLANG_ROUTER, ()),
    ],
)
def test_a_saved_answer_of_a_router_tells_no_engine(
    body: dict[str, Any], product: Product | None, workers: tuple[str, ...]
) -> None:
    (one,) = read(raw(body), "s") or ()
    assert isinstance(one, RouterSeen)
    assert (one.product, one.workers, one.control_plane_open) == (product, workers, None)


def test_an_address_with_a_password_is_not_passed_on() -> None:
    (one,) = (
        read(raw(smg_workers(f"http://u:{KEY}@h:1", f"http://h:1/?key={KEY}", "file:///etc", "http://h:1/a")), "s")
        or ()
    )
    assert isinstance(one, RouterSeen)
    assert one.workers == ("http://h:1/a",)


@pytest.mark.parametrize(
    "body", [{"error": "Unauthorized"}, {"detail": "Not Found"}, {"object": "error", "message": KEY}]
)
def test_an_error_that_was_saved_instead_is_said_to_be_one(body: dict[str, Any]) -> None:
    (one,) = read(raw(body), "s") or ()
    assert isinstance(one, Unreadable)
    assert KEY not in one.why


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"max_total_num_tokens=4096",
        b"[2026-10-30 12:00:00] max_total_num_tokens=4096, context_len=8192",
        b'{"level":"info","message":"max_total_num_tokens=4096, context_len=8192"}',
        b'{"level":"info"}\n{"max_total_num_tokens":1}',
        b'[{"message":"a"}]',
        b"[" * 100_000,
        b"9" * 10_000,
        b"null",
        b'"max_total_num_tokens"',
        b"\xff\xfe\x00",
    ],
)
def test_what_is_no_body_is_left_to_whoever_reads_logs(text: bytes) -> None:
    assert read(text, "s") is None


def test_a_body_that_windows_saved_is_read() -> None:
    text = json.dumps(server_info())
    for saved in (text.encode("utf-16"), text.encode("utf-8-sig"), text.replace(",", ",\r\n").encode()):
        assert read(saved, "s") == read(text.encode(), "s")


def test_what_is_larger_than_any_answer_is_no_body() -> None:
    assert read(b" " * BODY_LIMIT + raw(server_info()), "s") is None


def test_versions_that_differ_leave_none() -> None:
    (one,) = engines(server_info() | {"loads": [{"dp_rank": 0, "max_total_num_tokens": 4096}], "version": "0.5.23"})
    assert one.version == "0.5.23"


def test_what_is_null_is_told_to_be_unset_wherever_it_stands() -> None:
    body = {**server_info(), "internal_states": []}
    (one,) = engines(body)
    assert one.settings["api_key"] is None
    assert one.settings["ssl_keyfile"] is None


def test_a_setting_that_is_null_above_is_taken_from_the_rank() -> None:
    body = {**server_info(), "context_length": None}
    (one,) = engines(body)
    assert one.context_length == 4096
