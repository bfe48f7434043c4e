"""The pool by SGLang's rule: figures that logs confirm, and properties that hold for every model, GPU and layout."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kvfence.domain.capacity import floor_page
from kvfence.domain.estimate import (
    KNOWN,
    CacheType,
    CannotEstimateError,
    Estimate,
    Flags,
    Gpu,
    Layout,
    Model,
    Range,
    Role,
    Verdict,
    estimate,
    gpu_named,
    known_model,
    left_for_pool,
    model_from,
    requests_at_once,
    token_bytes,
    tokens_in,
)
from kvfence.domain.estimate.fraction import default_fraction

BIG = Gpu("big", 400.0, "made up")


def model(name: str) -> Model:
    found = known_model(name)
    assert found is not None
    return found


def card(name: str) -> Gpu:
    found = gpu_named(name)
    assert found is not None
    return found


def pool(name: str, gpu: Gpu, layout: Layout = Layout(), flags: Flags = Flags()) -> Range[int]:  # noqa: B008 - frozen
    return estimate(model(name), gpu, layout, flags).alone.reckoning.pool


def test_the_rule_gives_what_a_log_says_within_its_rounding() -> None:
    """Field log 002: its GiB are rounded to hundredths, and one hundredth is 164 tokens there."""
    tokens = tokens_in(left_for_pool(21.63, 21.63 - 6.09, 0.85), 65_536, Flags())
    assert abs(tokens - 46_611) < 164


def test_the_rule_keeps_to_whole_pages_and_to_the_bound() -> None:
    assert tokens_in(1.0, 65_536, Flags()) == 16_384
    assert tokens_in(1.0, 65_536, Flags(page_size=100)) == 16_300
    assert tokens_in(1.0, 65_536, Flags(max_total_tokens=1_000)) == 1_000
    assert tokens_in(1.0, 65_536, Flags(max_total_tokens=1_050, page_size=100)) == 1_000
    assert tokens_in(-1.0, 65_536, Flags()) == 0


@pytest.mark.parametrize(
    ("name", "tp", "cache_type", "expected"),
    [
        ("Llama-3.1-8B-Instruct", 1, "auto", 131_072),
        ("Llama-3.1-8B-Instruct", 1, "fp8_e5m2", 65_536),
        ("Llama-3.1-8B-Instruct", 8, "auto", 16_384),
        ("Llama-3.1-8B-Instruct", 16, "auto", 16_384),
        ("QwQ-32B", 4, "auto", 65_536),
        ("DeepSeek-R1", 1, "auto", 70_272),
        ("DeepSeek-R1", 8, "auto", 70_272),
        ("DeepSeek-R1", 8, "fp8_e4m3", 35_136),
    ],
)
def test_a_token_takes_what_sglang_takes_for_it(name: str, tp: int, cache_type: str, expected: int) -> None:
    assert token_bytes(model(name), Layout(tp=tp), CacheType(cache_type)) == Range.exactly(expected)


def test_windowed_layers_are_bounded_and_not_guessed() -> None:
    size = token_bytes(model("gpt-oss-120b"), Layout(), CacheType.AUTO)
    each = 8 * 64 * 2 * 2
    assert size == Range(18 * each, round(18 * each * 1.8), 36 * each)


def test_dp_attention_gives_each_rank_a_pool_of_whole_heads_of_its_own() -> None:
    alone = token_bytes(model("Llama-3.1-70B-Instruct"), Layout(tp=8), CacheType.AUTO)
    apart = token_bytes(model("Llama-3.1-70B-Instruct"), Layout(tp=8, dp=8, dp_attention=True), CacheType.AUTO)
    assert apart.likely == 8 * alone.likely


def test_replicas_have_pools_of_their_own_and_each_is_as_large_as_one_alone() -> None:
    assert pool("QwQ-32B", BIG, Layout(dp=4)) == pool("QwQ-32B", BIG, Layout())
    assert (Layout(tp=2, pp=2, dp=4).gpus, Layout(tp=8, dp=8, dp_attention=True).gpus) == (16, 8)


def test_a_card_of_several_that_runs_rocm_keeps_more_for_itself() -> None:
    many, other = Layout(tp=8), replace(BIG, rocm=True)
    assert pool("DeepSeek-R1", other, many).likely < pool("DeepSeek-R1", BIG, many).likely
    assert pool("DeepSeek-R1", replace(other, gib=800.0)) == pool("DeepSeek-R1", replace(BIG, gib=800.0))


@pytest.mark.parametrize(
    ("layout", "why"),
    [
        ({"tp": 3}, "attention heads cannot be split over 3"),
        ({"tp": 5}, "8 KV heads cannot be spread over 5"),
        ({"tp": 1, "pp": 65}, "more than the model has layers"),
        ({"tp": 4, "dp": 3, "dp_attention": True}, "divides"),
    ],
)
def test_a_layout_that_sglang_does_not_start_with_has_no_estimate(layout: dict[str, Any], why: str) -> None:
    with pytest.raises(CannotEstimateError, match=why):
        estimate(model("QwQ-32B"), BIG, Layout(**layout), Flags())


def test_weights_of_a_size_that_is_not_told_have_no_estimate_until_it_is() -> None:
    unknown = model_from({**KNOWN["Qwen/QwQ-32B"], "quantization_config": {"quant_method": "compressed-tensors"}}, "q")
    with pytest.raises(CannotEstimateError, match="--weights-gib"):
        estimate(unknown, BIG, Layout(), Flags())
    told = estimate(unknown, BIG, Layout(), Flags(weights_gib=20)).alone.reckoning
    assert told.weights.low == pytest.approx(20)


def test_a_cache_type_that_is_not_told_has_no_estimate_until_it_is() -> None:
    unknown = model_from({**KNOWN["Qwen/QwQ-32B"], "quantization_config": {"quant_method": "modelopt"}}, "q")
    with pytest.raises(CannotEstimateError, match="--kv-cache-dtype"):
        estimate(unknown, BIG, Layout(), Flags(weights_gib=20))
    assert estimate(unknown, BIG, Layout(), Flags(CacheType.FP8_E4M3, weights_gib=20)).alone.reckoning.pool.likely > 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"mem_fraction_static": 0.0},
        {"mem_fraction_static": 1.0},
        {"mem_fraction_static": float("nan")},
        {"page_size": 0},
        {"max_total_tokens": 0},
        {"weights_gib": 0.0},
        {"weights_gib": float("inf")},
    ],
)
def test_flags_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="--"):
        Flags(**wrong)


@pytest.mark.parametrize(
    ("gib", "tp", "role", "expected"),
    [
        # (MiB - (512 + 1.5 x chunk + tp / 8 x 1024 + 2 x batch + 400)) / MiB, at least 10 GiB apart above 60 GiB
        (80.0, 1, Role.UNIFIED, round((81920 - (512 + 12288 + 128 + 512 + 400)) / 81920, 3)),
        (80.0, 1, Role.PREFILL, round((81920 - (512 + 12288 + 128 + 400)) / 81920, 3)),
        (80.0, 1, Role.DECODE, round((81920 - 10240) / 81920, 3)),
        (24.0, 4, Role.UNIFIED, round((24576 - (512 + 6144 + 512 + 320 + 400)) / 24576, 3)),
    ],
)
def test_the_default_fraction_is_sglangs(gib: float, tp: int, role: Role, expected: float) -> None:
    assert default_fraction(model("QwQ-32B"), gib, Layout(tp=tp), role).likely == expected


def test_the_default_fraction_falls_with_the_padding_of_dp_attention() -> None:
    apart = 512 + 12288 + 8 / 8 * 1024 + 512 * 2 + 512 * 8 * 4.5
    layout = Layout(tp=8, dp=8, dp_attention=True)
    expected = round((139.8 * 1024 - apart - 1536) / (139.8 * 1024), 3)
    assert default_fraction(model("DeepSeek-R1"), 139.8, layout, Role.UNIFIED).likely == expected
    assert default_fraction(model("DeepSeek-R1"), 139.8, layout, Role.PREFILL).likely > expected


def test_decode_offers_less_than_prefill_and_prefill_less_than_one_alone() -> None:
    found = estimate(model("QwQ-32B"), card("A10G"), Layout(tp=4), Flags(mem_fraction_static=0.85))
    alone, prefill, decode = (one.holds.likely for one in found.roles)
    assert alone == found.alone.reckoning.pool.likely
    assert (prefill, decode) == (alone * 98 // 100, (alone - 513) * 98 // 100)


def test_what_is_offered_is_never_above_the_model_and_what_fits_is_not_up_to_the_model() -> None:
    found = estimate(model("Mistral-7B-Instruct-v0.1"), BIG, Layout(), Flags())
    assert found.alone.context == Range.exactly(32_768)
    assert found.verdict(100_000) is Verdict.FITS


def test_a_context_within_the_error_is_neither_fitting_nor_too_long() -> None:
    found = estimate(model("QwQ-32B"), card("A10G"), Layout(tp=4), Flags(mem_fraction_static=0.85))
    held = [one.holds for one in found.roles]
    assert found.verdict(min(one.low for one in held)) is Verdict.FITS
    assert found.verdict(min(one.low for one in held) + 1) is Verdict.CANNOT_TELL
    assert found.verdict(max(one.high for one in held)) is Verdict.CANNOT_TELL
    assert found.verdict(max(one.high for one in held) + 1) is Verdict.DOES_NOT_FIT
    assert found.alone.verdict(46_611) is Verdict.CANNOT_TELL


def test_a_model_that_does_not_fit_has_no_pool() -> None:
    found = estimate(model("Llama-3.1-70B-Instruct"), card("H100"), Layout(), Flags())
    assert (found.alone.reckoning.pool, found.starts) == (Range.exactly(0), Verdict.DOES_NOT_FIT)
    assert found.verdict(1) is Verdict.DOES_NOT_FIT


def test_requests_take_whole_pages() -> None:
    assert requests_at_once(Range(100, 200, 299), 50, 1) == Range(2, 4, 5)
    assert requests_at_once(Range(100, 200, 300), 50, 64) == Range(1, 3, 4)


MODELS = st.sampled_from(sorted(KNOWN)).map(model)
LAYOUTS = st.builds(Layout, tp=st.sampled_from([1, 2, 4, 8]), pp=st.integers(1, 4), dp=st.integers(1, 3)) | st.builds(
    Layout, tp=st.just(8), dp=st.sampled_from([2, 4, 8]), dp_attention=st.just(True)
)
FRACTIONS = st.none() | st.floats(0.3, 0.98)
FLAGS = st.builds(
    Flags, st.sampled_from(CacheType), FRACTIONS, st.sampled_from([1, 16, 64, 256]), st.none() | st.integers(1, 10**7)
)
GIBS = st.floats(1, 2_000, allow_nan=False)


def tried(which: Model, gib: float, layout: Layout, flags: Flags) -> Estimate:
    try:
        return estimate(which, Gpu("any", gib, "made up"), layout, flags)
    except CannotEstimateError:
        assume(False)
        raise


def pools(found: Estimate) -> list[int]:
    return [tokens for one in found.roles for r in [one.reckoning.pool] for tokens in (r.low, r.likely, r.high)]


@settings(deadline=None)  # the machine may be busy
@given(MODELS, GIBS, st.floats(0, 500), LAYOUTS, FLAGS)
def test_more_memory_never_makes_fewer_tokens(
    which: Model, gib: float, more: float, layout: Layout, flags: Flags
) -> None:
    """The fraction is given: SGLang's own default falls where a larger card gets larger graphs."""
    flags = replace(flags, mem_fraction_static=flags.mem_fraction_static or 0.8)
    before, after = (pools(tried(which, one, layout, flags)) for one in (gib, gib + more))
    assert all(one <= other for one, other in zip(before, after, strict=True))


@settings(deadline=None)  # the machine may be busy
@given(MODELS, GIBS, st.sampled_from([1, 2, 4]), st.floats(0.5, 0.98))
def test_twice_the_gpus_never_hold_fewer_tokens_each(which: Model, gib: float, tp: int, fraction: float) -> None:
    """As far as SGLang's rule goes: what buffers between GPUs take is left out, by comparing like with like."""
    flags = Flags(mem_fraction_static=fraction)
    few, many = (tried(which, gib, Layout(tp=one), flags).alone.reckoning for one in (tp, 2 * tp))
    assert many.weights.likely <= few.weights.likely
    assert many.token_bytes.likely <= few.token_bytes.likely
    lost = few.free.likely - many.free.likely
    same = tried(which, gib + lost, Layout(tp=2 * tp), flags).alone.reckoning
    assert same.pool.likely >= few.pool.likely * 0.999 - 1


@settings(deadline=None)  # the machine may be busy
@given(MODELS, GIBS, LAYOUTS, FLAGS)
def test_whatever_is_asked_the_figures_are_in_order_and_keep_to_the_flags(
    which: Model, gib: float, layout: Layout, flags: Flags
) -> None:
    found = tried(which, gib, layout, flags)
    for one in found.roles:
        pool_of, held = one.reckoning.pool, one.holds
        assert 0 <= pool_of.low <= pool_of.likely <= pool_of.high
        assert (held.low, held.likely, held.high) <= (pool_of.low, pool_of.likely, pool_of.high)
        for tokens in (pool_of.low, pool_of.likely, pool_of.high):
            assert tokens == floor_page(tokens, flags.page_size)
            assert flags.max_total_tokens is None or tokens <= flags.max_total_tokens


@settings(deadline=None)  # the machine may be busy
@given(MODELS, GIBS, LAYOUTS, FLAGS)
def test_half_the_bytes_of_a_token_are_never_fewer_tokens(
    which: Model, gib: float, layout: Layout, flags: Flags
) -> None:
    wide = pools(tried(which, gib, layout, replace(flags, cache_type=CacheType.BF16)))
    narrow = pools(tried(which, gib, layout, replace(flags, cache_type=CacheType.FP8_E5M2)))
    assert all(one <= other for one, other in zip(wide, narrow, strict=True))
