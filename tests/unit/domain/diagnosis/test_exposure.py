from __future__ import annotations

from dataclasses import replace

import pytest

from kvfence.domain.diagnosis.report import Severity
from kvfence.domain.diagnosis.seen import Product
from tests.unit.domain.diagnosis.scenes import decode, engine, found, prefill, report, router


def test_keys_in_clear_are_found_once_for_all_ranks_and_by_name() -> None:
    ranks = [engine(rank=rank, keys_shown=("api_key",), told_input_limit=None) for rank in range(3)]
    finding = found(*ranks)["KeysShown"]
    assert "api_key" in finding.message
    assert finding.message.count("http://engine") == 1


def test_an_open_control_plane_is_critical_and_the_cure_is_a_flag() -> None:
    finding = found(router(control_plane_open=True))["ControlPlaneOpen"]
    assert finding.severity is Severity.CRITICAL
    assert "--control-plane-api-keys" in finding.fix


@pytest.mark.parametrize("told", [False, None])
def test_a_control_plane_that_is_closed_or_not_told_is_no_finding(told: bool | None) -> None:
    assert found(router(control_plane_open=told, server_info_open=told)) == {}


def test_an_engines_settings_through_a_router_are_found_and_worse_with_keys() -> None:
    assert found(router(server_info_open=True))["ServerInfoOpen"].severity is Severity.MEDIUM
    with_keys = found(router(server_info_open=True, keys_shown=("api_key",)))["ServerInfoOpen"]
    assert with_keys.severity is Severity.HIGH
    assert "api_key" in with_keys.message


@pytest.mark.parametrize(
    ("product", "version", "pool", "is_found"),
    [
        (Product.SGLANG_ROUTER, "0.3.2", 70_000, True),
        (Product.SGLANG_ROUTER, None, 70_000, False),
        (Product.SGLANG_ROUTER, "0.4.0", 70_000, False),
        (Product.SGLANG_ROUTER, "0.3.2", 200_000, False),
        (Product.SMG, "1.13.0", 70_000, False),
    ],
)
def test_a_router_that_waits_for_decode_before_pools_apart_is_found(
    product: Product, version: str | None, pool: int, is_found: bool
) -> None:
    seen = prefill(kv_pool_tokens=pool, told_input_limit=None), decode(), router(product=product, version=version)
    assert ("RouterWaitsForDecode" in found(*seen)) is is_found


@pytest.mark.parametrize(
    ("version", "pool", "is_said"), [(None, 70_000, True), ("x", 70_000, True), (None, 200_000, False)]
)
def test_whether_a_router_of_an_untold_version_waits_is_missing_and_no_finding(
    version: str | None, pool: int, is_said: bool
) -> None:
    front = router(product=Product.SGLANG_ROUTER, version=version)
    told = report(prefill(kv_pool_tokens=pool, told_input_limit=None), decode(), front)
    assert "RouterWaitsForDecode" not in {one.id for one in told.findings}
    assert any("waits for decode" in one for one in told.missing) is is_said


def test_the_context_that_a_router_is_to_have_is_that_of_the_pair_behind_it() -> None:
    large = [replace(one(source=f"{name}2"), pair="2") for one, name in ((prefill, "p"), (decode, "d"))]
    small = replace(prefill(kv_pool_tokens=70_016, told_input_limit=None, context_length=70_016), pair="1")
    behind = small, replace(decode(context_length=70_016, told_input_limit=None), pair="1"), *large
    assert "RouterWaitsForDecode" not in found(*behind, router(product=Product.SGLANG_ROUTER, version="0.3.2"))
