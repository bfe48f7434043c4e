"""The catalogue that comes with kvfence: sound as a whole, and right about well-known releases and settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import kvfence.catalogue
from kvfence.api.v1alpha1.pool import RoleType
from kvfence.catalogue import packaged
from kvfence.catalogue.packaged import left_out
from kvfence.domain.advisories import Applies, Subject, judge
from kvfence.domain.severity import Severity

FOLDER = Path(kvfence.catalogue.__file__).parent / "osv"

PLAIN: dict[str, Any] = {
    "disaggregation_transfer_backend": "mooncake",
    "disaggregation_enable_kv_checksum": True,
    "enable_hierarchical_cache": False,
    "hicache_storage_backend": None,
    "enable_lmcache": False,
    "enable_lora": None,
    "lora_paths": None,
    "speculative_algorithm": None,
    "speculative_num_draft_tokens": None,
    "speculative_num_steps": None,
    "dcp_size": 1,
    "ep_size": 1,
    "page_size": 1,
    "api_key": None,
    "admin_api_key": None,
    "ssl_keyfile_password": None,
    "enable_custom_logit_processor": False,
    "encoder_only": False,
    "language_only": False,
    "disable_overlap_schedule": False,
}
"""As a server without anything special tells it."""

EAGLE = {"speculative_algorithm": "EAGLE", "speculative_num_steps": 3, "speculative_num_draft_tokens": 4, "ep_size": 8}
PREFILL, DECODE, ALONE = RoleType.PREFILL, RoleType.DECODE, RoleType.UNIFIED


def number(*numbers: int) -> set[str]:
    """Return ids of ours."""
    return {f"KVF-2026-{one:04d}" for one in numbers}


def sglang(version: str | None, role: RoleType, **settings: Any) -> Subject:
    """Return an engine that tells all its settings."""
    return Subject("sglang", version, role, PLAIN | settings)


APPLY: list[tuple[str, Subject, set[str]]] = [
    ("0.5.19 prefill", sglang("0.5.19", PREFILL), number(1, 3, 26, 30)),
    ("0.5.19 decode", sglang("0.5.19", DECODE), number(1, 3, 19, 30)),
    ("0.5.19 alone", sglang("0.5.19", ALONE), set()),
    ("0.5.20 prefill", sglang("0.5.20", PREFILL), number(3, 26)),
    ("0.5.20 decode", sglang("0.5.20", DECODE), number(3, 19)),
    ("0.5.21 decode", sglang("0.5.21", DECODE), number(4, 5, 19)),
    ("0.5.21 mori", sglang("0.5.21", PREFILL, disaggregation_transfer_backend="mori"), number(4, 7, 26)),
    ("0.5.22 prefill", sglang("0.5.22", PREFILL), number(26)),
    ("0.5.22 decode", sglang("0.5.22", DECODE), number(5, 19)),
    ("0.5.22 decode, no overlap", sglang("0.5.22", DECODE, disable_overlap_schedule=True), number(5)),
    ("0.5.22 prefill, HiCache", sglang("0.5.22", PREFILL, enable_hierarchical_cache=True), number(12, 15, 26)),
    ("0.5.23 prefill", sglang("0.5.23", PREFILL), number(26)),
    ("0.5.23 decode", sglang("0.5.23", DECODE), number(5)),
    ("0.5.23 alone", sglang("0.5.23", ALONE), set()),
    ("0.5.23 no checksum", sglang("0.5.23", DECODE, disaggregation_enable_kv_checksum=False), number(2, 5)),
    ("0.5.23 prefill, HiCache", sglang("0.5.23", PREFILL, enable_hierarchical_cache=True), number(15, 26)),
    ("0.5.23 decode, nixl", sglang("0.5.23", DECODE, disaggregation_transfer_backend="nixl"), number(5, 6)),
    ("0.5.23 decode, EAGLE and EP", sglang("0.5.23", DECODE, **EAGLE), number(5, 22)),
    (
        "0.5.23 frozen-KV MTP",
        sglang("0.5.23", ALONE, speculative_algorithm="FROZEN_KV_MTP", speculative_num_steps=5),
        number(21),
    ),
    ("0.5.19 DFlash", sglang("0.5.19", ALONE, speculative_algorithm="DFLASH"), number(38)),
    ("0.5.20 DFlash", sglang("0.5.20", ALONE, speculative_algorithm="DFLASH"), set()),
    ("0.5.23 DCP", sglang("0.5.23", PREFILL, dcp_size=2), number(13, 26)),
    ("0.5.23 LoRA", sglang("0.5.23", ALONE, lora_paths=["a"]), number(24)),
    ("0.5.23 keys", sglang("0.5.23", ALONE, api_key="***"), {"GHSA-4qvj-c8fp-873j", *number(28)}),
    ("0.5.23 logit", sglang("0.5.23", ALONE, enable_custom_logit_processor=True), {"CVE-2026-7304"}),
    ("0.5.21 LMCache", sglang("0.5.21", ALONE, enable_lmcache=True), number(25)),
    ("0.5.9 encoder apart", sglang("0.5.9", ALONE, language_only=True), {"CVE-2026-3060"}),
    ("0.5.10 encoder apart", sglang("0.5.10", ALONE, language_only=True), set()),
    (
        "0.5.17 HiCache on Mooncake",
        sglang("0.5.17", ALONE, enable_hierarchical_cache=True, hicache_storage_backend="mooncake"),
        number(14, 15, 16),
    ),
    ("0.5.2 prefill", sglang("0.5.2", PREFILL), {"CVE-2025-10164", *number(1, 3, 8, 9, 26, 29, 30)}),
    ("a development version", sglang("0.5.24.dev7+g1", DECODE), set()),
    ("smg 1.13.0", Subject("smg", "1.13.0"), number(42, 44, 47, 48, 49, 50)),
    (
        "smg 1.13.0, open",
        Subject("smg", "1.13.0", None, {"control_plane_open": True, "server_info_open": True}),
        number(39, 40, 42, 44, 47, 48, 49, 50),
    ),
    (
        "smg 1.13.0, told retries",
        Subject("smg", "1.13.0", None, {"disable_retries": False}),
        number(41, 42, 44, 47, 48, 49, 50),
    ),
    ("sglang-router 0.3.2", Subject("sglang-router", "0.3.2"), number(27)),
    ("vllm 0.7.1", Subject("vllm", "0.7.1"), set()),
    (
        "vllm 0.7.1, prefix cache",
        Subject("vllm", "0.7.1", None, {"enable_prefix_caching": True}),
        {"CVE-2025-25183", "CVE-2025-46570"},
    ),
    ("vllm 0.8.4", Subject("vllm", "0.8.4"), {"CVE-2025-48944"}),
    ("vllm 0.10.2", Subject("vllm", "0.10.2", None, {"api_key": "***"}), {"CVE-2025-59425", "CVE-2025-62164"}),
    ("vllm 0.23.0", Subject("vllm", "0.23.0"), set()),
    ("vllm 0.23.0, GGUF", Subject("vllm", "0.23.0", None, {"quantization": "gguf"}), {"CVE-2026-53923"}),
]

UNKNOWN: list[tuple[str, Subject, set[str]]] = [
    ("0.5.23 decode", sglang("0.5.23", DECODE), {"CVE-2026-5760", "CVE-2026-7301", "CVE-2026-7302"}),
    (
        "0.5.23 alone, HiCache",
        sglang("0.5.23", ALONE, enable_hierarchical_cache=True),
        {"CVE-2026-5760", "CVE-2026-7301", "CVE-2026-7302", *number(17, 18)},
    ),
    (
        "0.5.19 many draft tokens, large pages",
        sglang("0.5.19", ALONE, speculative_algorithm="EAGLE", speculative_num_draft_tokens=5, page_size=64),
        {"CVE-2026-5760", "CVE-2026-7301", "CVE-2026-7302", *number(20, 23)},
    ),
    ("smg 1.13.0", Subject("smg", "1.13.0"), number(39, 40, 41, 43, 45, 46)),
    ("sglang-router 0.3.2", Subject("sglang-router", "0.3.2"), number(39, 41, 46)),
    (
        "vllm 0.8.4",
        Subject("vllm", "0.8.4"),
        {
            "CVE-2025-30202", "CVE-2025-32444", "CVE-2025-46570", "CVE-2025-47277", "CVE-2025-59425", "CVE-2026-53923",
            *number(31, 32, 37),
        },
    ),
    ("vllm 0.23.0", Subject("vllm", "0.23.0"), {"CVE-2026-53923", *number(31, 32, 33, 37)}),
    ("vllm 0.25.0", Subject("vllm", "0.25.0"), number(31, 32, 34, 37)),
    ("vllm 0.23.1", Subject("vllm", "0.23.1"), number(31, 32, 37)),
    ("nixl", Subject("nixl", None), number(33)),
    ("lmcache", Subject("lmcache", "0.5.0"), number(35)),
    ("lmcache 0.3.13", Subject("lmcache", "0.3.13"), number(36)),
]  # fmt: skip


def judged(subject: Subject, applies: Applies) -> set[str]:
    """Return the ids of the advisories with this judgement."""
    return {one.id for one in packaged().advisories if judge(one, subject).applies is applies}


@pytest.mark.parametrize(("_", "subject", "expected"), APPLY, ids=[row[0] for row in APPLY])
def test_what_applies(_: str, subject: Subject, expected: set[str]) -> None:
    assert judged(subject, Applies.YES) == expected


@pytest.mark.parametrize(("_", "subject", "expected"), UNKNOWN, ids=[row[0] for row in UNKNOWN])
def test_what_cannot_be_told(_: str, subject: Subject, expected: set[str]) -> None:
    assert judged(subject, Applies.UNKNOWN) == expected


def test_a_plain_engine_of_the_newest_release_is_under_nothing_grave() -> None:
    for role in RoleType:
        under = judged(sglang("0.5.23", role), Applies.YES)
        assert not [one.id for one in packaged().advisories if one.id in under and one.severity.at_least(Severity.HIGH)]


def test_of_a_development_version_every_advisory_that_its_settings_allow_is_unknown() -> None:
    subject = sglang("0.5.24.dev7+g1a2b3c4", PREFILL)
    assert number(1, 3, 8, 9, 26, 29, 30) <= judged(subject, Applies.UNKNOWN)
    assert judged(subject, Applies.YES) == set()


def test_what_leaks_between_requests_is_never_called_closed_in_pools() -> None:
    closed = {one.id for one in packaged().advisories if one.closed_in_pools}
    control = {"GHSA-4qvj-c8fp-873j", "CVE-2025-10164", "CVE-2026-3059", "CVE-2026-3989", "CVE-2026-5760"}
    assert closed == control | {"CVE-2026-7301", "CVE-2026-7302", *number(28)}


def test_the_incident_is_critical_and_says_what_to_do() -> None:
    incident = next(one for one in packaged().advisories if one.id == "KVF-2026-0001")
    assert incident.severity is Severity.CRITICAL
    assert "--context-length" in incident.what_to_do
    assert any(address.endswith("/30233") for address in incident.references)


def test_the_whole_catalogue_can_be_read_and_each_file_has_the_name_of_its_id() -> None:
    assert packaged().problems == ()
    assert packaged().date is not None
    named = {file.stem: json.loads(file.read_text())["id"] for file in FOLDER.glob("*.json")}
    assert named == {one.id: one.id for one in packaged().advisories}


def test_every_advisory_is_met_by_a_row_above() -> None:
    expected = {name for _, _, names in [*APPLY, *UNKNOWN] for name in names}
    meant_for_people = {"CVE-2025-29783", "CVE-2026-3059", "CVE-2026-3989", "CVE-2026-7669", *number(10, 11)}
    assert {one.id for one in packaged().advisories} - expected == meant_for_people
    old = [sglang("0.5.9", ALONE), sglang("0.5.10", PREFILL), Subject("vllm", "0.7.1")]
    assert meant_for_people <= {name for subject in old for name in judged(subject, Applies.UNKNOWN)}


def test_ids_of_ours_are_given_in_turn() -> None:
    ours = sorted(one.id for one in packaged().advisories if one.id.startswith("KVF-"))
    assert ours == sorted(number(*range(1, len(ours) + 1)))


def test_no_advisory_is_called_like_another() -> None:
    names = [name for one in packaged().advisories for name in (one.id, *one.aliases)]
    assert len(names) == len(set(names))


def test_what_must_not_gate_is_left_out_with_a_reason() -> None:
    assert any("CVE-2026-3108" in what and why for what, why in left_out())
    assert not any("CVE-2026-3108" in (one.id, *one.aliases) for one in packaged().advisories)
