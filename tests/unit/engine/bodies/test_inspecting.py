"""Servers on loopback that answer as real ones do, as far as `recorded` has them, and servers that do not."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from aiohttp import web

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.diagnosis.seen import EngineSeen, Product, RouterSeen, Seen, Unreadable
from kvfence.engine.bodies import BODY_LIMIT, inspect
from kvfence.engine.bodies import inspecting as module
from kvfence.engine.web import Web
from tests.unit.engine.bodies.recorded import (
    DECODE,
    KEY,
    METRICS,
    PREFILL,
    ROUTER_INFO,
    ROUTER_MODELS,
    SMG_MODELS,
    VLLM_METRICS,
    VLLM_MODELS,
    loads,
    models,
    router_workers,
    server_info,
    smg_workers,
)
from tests.unit.engine.servers import serving

Pages = Mapping[str, Any]
"""By path: JSON, bytes as they are, or a status."""


def asked(
    pages: Pages, *, key: str | None = None, wants_key: str | None = None, path: str = "", seen: list[str] | None = None
) -> tuple[Seen, ...]:
    """Return what a server tells that has these pages; of all others it knows nothing. `open:` pages need no key."""
    calls = seen if seen is not None else []

    async def handler(request: web.Request) -> web.StreamResponse:
        calls.append(f"{request.method} {request.path}")
        anybody = pages.get(f"open:{request.path}")
        if anybody is None and wants_key and request.headers.get("Authorization") != f"Bearer {wants_key}":
            return web.json_response({"error": "Unauthorized"}, status=401)
        page = anybody if anybody is not None else pages.get(request.path, 404)
        if isinstance(page, int):
            return web.Response(status=page)
        return web.Response(body=page) if isinstance(page, bytes) else web.json_response(page)

    async def ask() -> tuple[Seen, ...]:
        async with serving(handler) as server, Web(5, BODY_LIMIT, key) as client:
            return await inspect(client, str(server.make_url("/")) + path, "s")

    return asyncio.run(ask())


def engine(pages: Pages, **how: Any) -> EngineSeen:
    (one,) = asked(pages, **how)
    assert isinstance(one, EngineSeen)
    return one


def router(pages: Pages, **how: Any) -> RouterSeen:
    (one,) = asked(pages, **how)
    assert isinstance(one, RouterSeen)
    return one


WHOLE = {
    "/server_info": server_info(),
    "/v1/models": models(),
    "/v1/loads": loads(4096),
    "/metrics": METRICS,
}


def test_an_engine_of_today_is_asked_in_few_requests_and_never_with_post() -> None:
    calls: list[str] = []
    one = engine(WHOLE, seen=calls)
    assert (one.kv_pool_tokens, one.context_length, one.told_input_limit) == (4096, 4096, 4090)
    assert (one.version, one.role, one.product, one.notes) == ("0.5.23", RoleType.UNIFIED, Product.SGLANG, ())
    assert len(calls) <= 6
    assert {call.split()[0] for call in calls} == {"GET"}


@pytest.mark.parametrize("path", ["server_info", "v1/models", "v1", "v1/", "metrics?x=1"])
def test_an_address_may_be_copied_with_a_path(path: str) -> None:
    assert engine(WHOLE, path=path).kv_pool_tokens == 4096


def test_an_older_engine_is_asked_by_its_older_path() -> None:
    one = engine({"/get_server_info": server_info(version="0.5.9"), "/v1/models": models()})
    assert (one.version, one.kv_pool_tokens) == ("0.5.9", 4096)


def test_ranks_are_named_by_loads_whatever_the_order_of_the_others() -> None:
    pages = {**WHOLE, "/server_info": server_info(ranks=(3000, 5000)), "/v1/loads": loads(5000, 3000), "/metrics": 404}
    found = asked(pages)
    assert [(one.rank, one.kv_pool_tokens) for one in found if isinstance(one, EngineSeen)] == [(0, 5000), (1, 3000)]


def test_loads_fill_in_the_ranks_that_server_info_leaves_out() -> None:
    info = server_info(ranks=(5000,), dp_size=2)
    found = asked({**WHOLE, "/server_info": info, "/v1/loads": loads(5000, 3000), "/metrics": 404})
    assert [one.kv_pool_tokens for one in found if isinstance(one, EngineSeen)] == [5000, 3000]
    assert [one.ranks_untold for one in found if isinstance(one, EngineSeen)] == [0, 0]


def test_answers_that_contradict_each_other_leave_no_pool() -> None:
    one = engine({**WHOLE, "/v1/loads": loads(1234)})
    assert one.kv_pool_tokens is None
    assert any("1234" in note and "4096" in note for note in one.notes)


def test_metrics_tell_the_pool_where_server_info_is_closed() -> None:
    one = engine({"/server_info": 404, "/v1/models": models(), "/metrics": METRICS})
    assert (one.kv_pool_tokens, one.context_length) == (4096, 4096)


def test_a_server_that_tells_only_its_context_is_a_row_with_a_reason() -> None:
    one = engine({"/server_info": 503, "/v1/models": models()})
    assert (one.kv_pool_tokens, one.context_length) == (None, 4096)
    assert any("503" in note for note in one.notes)


def test_the_key_is_used_and_keys_in_clear_are_named_without_their_values() -> None:
    one = engine({**WHOLE, "/server_info": server_info(api_key=KEY)}, key=KEY, wants_key=KEY)
    assert one.keys_shown == ("api_key",)
    assert KEY not in repr(one) + repr(dict(one.settings)) + repr(one.notes)


def test_a_server_that_wants_a_key_is_said_to_want_one() -> None:
    (one,) = asked(WHOLE, wants_key=KEY)
    assert isinstance(one, Unreadable)
    assert "KVFENCE_API_KEY" in one.why


def test_vllm_tells_by_models_metrics_and_version() -> None:
    pages = {"/v1/models": VLLM_MODELS, "/metrics": VLLM_METRICS, "/version": {"version": "0.11.0"}}
    found = [one for one in asked(pages) if isinstance(one, EngineSeen)]
    assert [(one.rank, one.kv_pool_tokens, one.context_fits) for one in found] == [(0, 16000, True), (1, 14400, False)]
    assert {(one.product, one.version, one.context_length) for one in found} == {(Product.VLLM, "0.11.0", 15000)}


def test_an_open_smg_is_seen_with_its_workers_and_what_it_hands_out() -> None:
    pages = {"/workers": smg_workers(PREFILL, DECODE), "/v1/models": SMG_MODELS}
    one = router({**pages, "/get_server_info": server_info(api_key=KEY)})
    assert (one.product, one.control_plane_open, one.server_info_open) == (Product.SMG, True, True)
    assert (one.workers, one.keys_shown) == ((PREFILL, DECODE), ("api_key",))
    assert KEY not in repr(one)


def test_a_locked_smg_still_hands_out_an_engines_settings() -> None:
    pages = {"/workers": smg_workers(PREFILL), "open:/v1/models": SMG_MODELS, "open:/get_server_info": server_info()}
    one = router(pages, wants_key=KEY)
    assert (one.product, one.control_plane_open, one.server_info_open) == (Product.SMG, False, True)
    assert one.workers == ()


def test_the_users_key_is_not_what_makes_a_control_plane_open() -> None:
    pages = {"/workers": smg_workers(PREFILL), "open:/v1/models": SMG_MODELS, "open:/get_server_info": 404}
    one = router(pages, key=KEY, wants_key=KEY)
    assert (one.control_plane_open, one.server_info_open) == (False, False)


def test_an_open_router_of_the_older_kind_is_seen() -> None:
    one = router({"/workers": router_workers(PREFILL), "/v1/models": ROUTER_MODELS, "/get_server_info": ROUTER_INFO})
    assert (one.product, one.control_plane_open, one.server_info_open) == (Product.SGLANG_ROUTER, True, False)


def test_a_router_that_is_locked_all_over_is_told_from_an_engine_by_its_liveness() -> None:
    one = router({"open:/liveness": b"OK", "/workers": smg_workers()}, wants_key=KEY)
    assert (one.product, one.control_plane_open) == (None, False)


def test_what_a_router_without_engines_hands_out_is_not_known() -> None:
    one = router({"/workers": smg_workers(), "/v1/models": 503, "/get_server_info": 503})
    assert (one.control_plane_open, one.server_info_open) == (True, None)


@pytest.mark.parametrize(
    "pages",
    [
        {},
        {"/server_info": b"<html>", "/v1/models": b"<html>"},
        {"/server_info": [], "/v1/models": {"data": "x"}},
        {"/server_info": b"[" * 100_000, "/v1/models": b"9" * 10_000},
        {"/server_info": 500, "/v1/models": 302, "/workers": {"workers": "all"}},
    ],
)
def test_whatever_else_answers_is_said_to_be_something_else(pages: Pages) -> None:
    (one,) = asked(pages)
    assert isinstance(one, Unreadable)
    assert "SGLang" in one.why


def test_a_server_that_hangs_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.1)

    async def hang(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3)
        return web.Response()

    async def ask() -> tuple[Seen, ...]:
        async with serving(hang) as server, Web(5) as client:
            return await asyncio.wait_for(inspect(client, str(server.make_url("")), "s"), 2)

    (one,) = asyncio.run(ask())
    assert isinstance(one, Unreadable)
    assert "in time" in one.why


def test_an_answer_without_end_is_not_read() -> None:
    (one,) = asked({"/server_info": b" " * (BODY_LIMIT + 10), "/v1/models": 404})
    assert isinstance(one, Unreadable)
    assert "too large" in one.why


@pytest.mark.parametrize("url", ["", "h:1", "ftp://h", "http://", "http://h:99999", "http://[::1", "/server_info"])
def test_what_is_no_address_is_said_to_be_none(url: str) -> None:
    async def ask() -> tuple[Seen, ...]:
        async with Web(1) as client:
            return await inspect(client, url, "s")

    (one,) = asyncio.run(ask())
    assert isinstance(one, Unreadable)
    assert "address" in one.why


def test_a_server_that_is_not_there_is_said_not_to_answer() -> None:
    async def ask() -> tuple[Seen, ...]:
        async with Web(1) as client:
            return await inspect(client, "http://127.0.0.1:1", "s")

    (one,) = asyncio.run(ask())
    assert isinstance(one, Unreadable)
    assert "Nothing answers" in one.why
