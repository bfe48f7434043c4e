from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kvfence.domain.diagnosis.pairs import ALIKE, CHECKSUM
from kvfence.domain.diagnosis.report import Severity
from kvfence.domain.diagnosis.seen import EngineSeen
from tests.unit.domain.diagnosis.scenes import decode, engine, found, prefill, report


@pytest.mark.parametrize(
    ("version", "severity"),
    [("0.5.19", Severity.CRITICAL), ("0.5.20", Severity.HIGH), ("0.5.21", None), ("0.5.23", None), (None, None)],
)
def test_a_release_that_is_too_old_for_pairs_is_found(version: str | None, severity: Severity | None) -> None:
    finding = found(prefill(version=version), decode(version=version)).get("EngineTooOldForPairs")
    assert (None if finding is None else finding.severity) is severity
    if finding is not None:
        assert "http://prefill and http://decode" in finding.message
        assert "0.5.23" in finding.fix


def test_alone_an_old_release_is_not_too_old_for_pairs() -> None:
    assert "EngineTooOldForPairs" not in found(engine(version="0.5.19"))


def test_two_versions_in_a_pair_are_found() -> None:
    finding = found(prefill(version="0.5.22"), decode())["VersionsDiffer"]
    assert "0.5.22, 0.5.23" in finding.message


@pytest.mark.parametrize("other", ["0.5.23", "v0.5.23", None])
def test_one_version_written_twice_is_one(other: str | None) -> None:
    assert "VersionsDiffer" not in found(prefill(version=other), decode())


def test_two_prefill_engines_of_different_versions_are_no_pair() -> None:
    assert "VersionsDiffer" not in found(prefill(version="0.5.22"), prefill(source="http://p2"))


def test_cutting_prompts_is_critical_in_a_pair_and_a_nuisance_alone() -> None:
    on = {"allow_auto_truncate": True}
    assert found(prefill(settings=on), decode())["AutoTruncateInPair"].severity is Severity.CRITICAL
    assert found(engine(settings=on))["AutoTruncate"].severity is Severity.LOW


@pytest.mark.parametrize("name", ALIKE)
def test_halves_that_differ_in_what_must_be_alike_are_found(name: str) -> None:
    finding = found(prefill(settings={name: "one"}), decode(settings={name: "other"}))["RolesDiffer"]
    assert name in finding.message
    assert f"--{name.replace('_', '-')}" in finding.fix


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"model_path": "/mnt/a/m"}, {"model_path": "/mnt/b/m/"}),
        ({"mem_fraction_static": 0.8}, {"mem_fraction_static": 0.7}),
        ({"quantization": None}, {}),
        ({"limit_mm_data_per_request": {"a": 1, "b": 2}}, {"limit_mm_data_per_request": {"b": 2, "a": 1}}),
    ],
)
def test_halves_may_differ_in_the_rest(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert found(prefill(settings=one), decode(settings=other)) == {}


def test_contexts_that_differ_are_found_also_where_no_flag_says_them() -> None:
    other = decode(context_length=50_000, told_input_limit=None, settings={"context_length": None})
    assert "context_length" in found(prefill(), other)["RolesDiffer"].message


def test_what_a_message_quotes_of_a_setting_is_short_and_on_one_line() -> None:
    message = found(prefill(settings={"dtype": "a\nb" * 999}), decode(settings={"dtype": "x"}))["RolesDiffer"].message
    assert "\n" not in message
    assert len(message) < 400
    templates = prefill(settings={"chat_template": "PRIVATE"}), decode(settings={"chat_template": "x"})
    assert "PRIVATE" not in found(*templates)["RolesDiffer"].message


@pytest.mark.parametrize(
    ("one", "other", "ids"),
    [
        (True, True, set()),
        (False, False, {"ChecksumOff"}),
        (True, False, {"ChecksumOneSided"}),
        (False, True, {"ChecksumOneSided"}),
        (None, False, {"ChecksumOff"}),
        (None, None, set()),
    ],
)
def test_the_checksum_is_on_in_both_halves_or_it_is_found(one: bool | None, other: bool | None, ids: set[str]) -> None:
    assert set(found(prefill(settings={CHECKSUM: one}), decode(settings={CHECKSUM: other}))) == ids


def test_without_a_partner_no_checksum_is_wanted() -> None:
    assert found(engine(settings={CHECKSUM: False})) == {}


def test_a_release_without_a_checksum_is_told_to_be_too_old_and_nothing_more() -> None:
    old = {"version": "0.5.20", "settings": {CHECKSUM: False}}
    assert set(found(prefill(**old), decode(**old))) == {"EngineTooOldForPairs"}


def test_a_checksum_on_which_ranks_disagree_is_found() -> None:
    assert "ChecksumNotReliable" in found(prefill(version="0.5.22"), decode(version="0.5.22"))


def test_a_checksum_that_other_widths_switch_off_is_found() -> None:
    assert "ChecksumSkipped" in found(prefill(), decode(settings={"tp_size": 4}))
    both_off = {CHECKSUM: False}
    assert "ChecksumSkipped" not in found(prefill(settings=both_off), decode(settings={"tp_size": 4, **both_off}))


def test_pairs_of_two_models_are_not_held_against_each_other() -> None:
    other = {"settings": {"served_model_name": "n", "kv_cache_dtype": "fp8_e4m3"}, "version": "0.5.24"}
    small = prefill(source="http://p2", kv_pool_tokens=70_016, told_input_limit=70_010, **other)
    seen = prefill(), decode(), small, decode(source="http://d2", **other), engine()
    told = found(*seen)
    assert set(told) == {"ContextAbovePool"}
    assert "--context-length 70016" in told["ContextAbovePool"].fix


def named(pair: str, **changes: Any) -> tuple[EngineSeen, EngineSeen]:
    """Return both halves of a pair that somebody named."""
    return (
        prefill(**{"source": f"{pair} (prefill)", "pair": pair, **changes}),
        decode(**{"source": f"{pair} (decode)", "pair": pair, **changes}),
    )


def test_two_named_pairs_of_one_model_are_not_held_against_each_other() -> None:
    small = {"context_length": 90_048, "kv_pool_tokens": 70_016, "told_input_limit": 70_010, "version": "0.5.24"}
    first, second = named("1", settings={"kv_cache_dtype": "fp8_e4m3"}), named("2", **small)
    told = report(first[0], second[0], first[1], second[1])
    assert {one.id for one in told.findings} == {"ContextAbovePool"}
    (limited,) = [one for one in told.findings if "2 (prefill)" in one.message]
    assert "--context-length 69440" in limited.fix
    assert report(*named("1"), *named("2", settings={"kv_cache_dtype": "fp8_e4m3"})).findings == ()


def test_a_server_that_was_named_in_two_pairs_joins_them() -> None:
    one, other = named("1"), named("2", settings={"kv_cache_dtype": "fp8_e4m3"})
    shared = replace(one[0], pair="2")
    message = found(*one, shared, other[1])["RolesDiffer"].message
    assert "1 (prefill)" in message
    assert "2 (decode)" in message


def test_a_pair_that_was_named_serves_together_whatever_its_models_are_called() -> None:
    first = named("1")
    renamed = replace(first[1], settings={**first[1].settings, "served_model_name": "n"})
    told = found(first[0], renamed, *named("2", settings={"served_model_name": "n"}))
    assert "1 (prefill) and 1 (decode)" in told["RolesDiffer"].message


def test_a_pair_that_serves_under_two_names_is_one_pair() -> None:
    other = decode(settings={"served_model_name": "n"})
    assert "served_model_name" in found(prefill(), other)["RolesDiffer"].message
