from __future__ import annotations

import pytest

from kvfence.domain.diagnosis.report import Severity
from kvfence.domain.diagnosis.seen import EngineSeen, Product
from tests.unit.domain.diagnosis.scenes import decode, engine, found, prefill, report


def test_sound_engines_have_no_findings() -> None:
    assert found(engine()) == {}
    assert found(prefill(), decode()) == {}


def test_more_context_than_the_pool_holds_is_found_and_the_cure_fits() -> None:
    finding = found(engine(kv_pool_tokens=70_000, told_input_limit=69_994))["ContextAbovePool"]
    assert finding.severity is Severity.HIGH
    assert "100000" in finding.message
    assert "70000" in finding.message
    assert "http://engine" in finding.message
    assert "--context-length 69952" in finding.fix  # whole pages of 64


@pytest.mark.parametrize(
    ("version", "severity"),
    [
        ("0.5.11", Severity.CRITICAL),
        ("0.5.19", Severity.CRITICAL),
        ("0.5.20", Severity.HIGH),
        ("0.5.23", Severity.HIGH),
        ("0.0.0.dev1+g11b76d24d", Severity.HIGH),
        (None, Severity.HIGH),
    ],
)
def test_it_is_critical_in_a_pair_whose_release_answers_from_stale_memory(
    version: str | None, severity: Severity
) -> None:
    small = prefill(version=version, kv_pool_tokens=70_000, told_input_limit=69_994)
    finding = found(small, decode(version=version))["ContextAbovePool"]
    assert finding.severity is severity
    assert ("pip install" in finding.fix) is (severity is Severity.CRITICAL)


def test_alone_it_is_not_critical_whatever_the_release() -> None:
    old = engine(version="0.5.11", kv_pool_tokens=70_000, told_input_limit=69_994)
    assert found(old)["ContextAbovePool"].severity is Severity.HIGH


def test_the_cure_for_a_pair_is_what_the_smaller_half_can_keep() -> None:
    both = (
        prefill(kv_pool_tokens=70_016, told_input_limit=70_010),
        decode(kv_pool_tokens=70_016, told_input_limit=70_010),
    )
    assert "--context-length 69440" in found(*both)["ContextAbovePool"].fix  # 70016 - 512 - 64, and whole pages


def test_the_cure_for_half_a_pair_says_that_the_other_half_counts_too() -> None:
    fix = found(prefill(kv_pool_tokens=70_016, told_input_limit=70_010))["ContextAbovePool"].fix
    assert "--context-length 70016" in fix
    assert "not seen" in fix


def test_the_cure_for_vllm_is_its_own_flag() -> None:
    vllm = EngineSeen("v", product=Product.VLLM, kv_pool_tokens=1000, context_length=2000, page_size=16)
    assert "--max-model-len 992" in found(vllm)["ContextAbovePool"].fix


def test_one_finding_names_all_ranks_that_are_too_small() -> None:
    ranks = [engine(rank=rank, kv_pool_tokens=pool, told_input_limit=None) for rank, pool in enumerate((10, 2**20, 20))]
    finding = found(*ranks)["ContextAbovePool"]
    assert "ranks 0, 2" in finding.message
    assert "holds 10" in finding.message


def test_an_engine_that_did_not_start_has_no_finding_about_its_context() -> None:
    failed = engine(started=False, kv_pool_tokens=10, notes=("CUDA ran out of memory.",))
    assert set(found(failed)) == {"StartFailed"}
    assert "CUDA ran out of memory." in found(failed)["StartFailed"].message


def test_a_limit_below_what_pool_and_context_explain_is_found() -> None:
    finding = found(engine(told_input_limit=18_426))["LimitsDisagree"]
    assert "--context-length 18432" in finding.fix


def test_a_limit_above_what_the_pool_holds_is_found() -> None:
    assert "LimitsDisagree" in found(engine(kv_pool_tokens=150_000, context_length=150_000, told_input_limit=199_994))


@pytest.mark.parametrize("limit", [99_994, None])
def test_a_limit_that_is_explained_or_not_told_is_no_finding(limit: int | None) -> None:
    assert found(engine(told_input_limit=limit)) == {}


def test_a_cap_put_on_later_is_no_contradiction() -> None:
    assert found(engine(context_length=50_000)) == {}


def test_a_diffusion_models_block_is_no_contradiction() -> None:
    assert found(engine(told_input_limit=99_000, settings={"dllm_algorithm": "LowConfidence"})) == {}


def test_a_decode_pool_without_room_for_what_it_keeps_back_is_found() -> None:
    tight = decode(kv_pool_tokens=100_032)
    finding = found(prefill(), tight)["DecodeReserveTooSmall"]
    assert "99456" in finding.message  # 100032 - 512 - 64
    assert "--context-length 99456" in finding.fix
    assert "DecodeReserveTooSmall" not in found(prefill(kv_pool_tokens=100_032), decode())


def test_where_decode_does_not_tell_what_it_keeps_back_nothing_is_claimed() -> None:
    assert found(prefill(), decode(kv_pool_tokens=100_032, reserved_decode_tokens=None)) == {}


@pytest.mark.parametrize("untold", ["reserved_decode_tokens", "page_size"])
def test_no_figure_is_made_smaller_by_a_guess_of_what_decode_keeps_back(untold: str) -> None:
    settings = {"page_size": None}
    small = decode(kv_pool_tokens=8192, told_input_limit=None, settings=settings, **{untold: None})
    told = report(prefill(), small)
    (finding,) = [one for one in told.findings if one.id == "ContextAbovePool"]
    assert told.json()["engines"][1]["advertisableContext"] == 8192
    assert "--context-length 8192" in finding.fix
    assert any("what decode keeps back" in one and "512" in one for one in told.missing)
    assert not any("keeps back" in one for one in report(prefill(), decode()).missing)


def test_a_server_of_many_ranks_names_them_by_the_first_and_the_last() -> None:
    ranks = [engine(rank=rank, kv_pool_tokens=10, told_input_limit=None) for rank in (*range(300), 400, 401)]
    assert "(ranks 0 to 299, 400, 401)" in found(*ranks)["ContextAbovePool"].message


def test_ranks_of_different_size_are_found() -> None:
    ranks = engine(rank=0), engine(rank=1, kv_pool_tokens=150_000, told_input_limit=None)
    assert "--max-total-tokens 150000" in found(*ranks)["RanksDiffer"].fix


@pytest.mark.parametrize(("wanted", "is_found"), [(300_000, True), (200_063, False), (200_000, False), (None, False)])
def test_a_pool_smaller_than_was_asked_for_is_found(wanted: int | None, is_found: bool) -> None:
    assert ("PoolSmallerThanAsked" in found(engine(settings={"max_total_tokens": wanted}))) is is_found


@pytest.mark.parametrize("pool", [0, 3])
def test_where_nothing_fits_the_cure_is_no_length(pool: int) -> None:
    fix = found(engine(kv_pool_tokens=pool, told_input_limit=None))["ContextAbovePool"].fix
    assert "--context-length" not in fix
    assert "memory" in fix
