"""The gate EngineAllowed by known faults: what blocks, what is told, and what weakens a pool."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from kvfence.api.v1alpha1.conditions import ConditionStatus, ConditionType
from kvfence.api.v1alpha1.pool import RoleType
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.catalogue import packaged
from kvfence.domain.advisories import Advisory, Affected, Span
from kvfence.domain.advisories.conditions import Asked, InRole, Operator, Place, Value
from kvfence.domain.advisory_gate import gravest
from kvfence.domain.decisions import decide
from kvfence.domain.engine_allowed import engine_allowed, version_of
from kvfence.domain.engines import Facts
from kvfence.domain.findings import Finding
from kvfence.domain.severity import Severity
from kvfence.domain.summary import all_conditions
from tests.unit.domain.known_faults import NOW, advisory, watched
from tests.unit.domain.pools_of_engines import decode, pool, prefill, spec

EXEMPTION = {"id": "KVF-2026-9001", "who": "ada", "reason": "no GPU of ours is shared", "until": "2026-12-24T00:00:00Z"}


def conditions(observed: Any) -> dict[str, Finding]:
    return {finding.condition: finding for finding in all_conditions(observed, decide(observed))}


def secured(observed: Any) -> Finding:
    return conditions(observed)[ConditionType.SECURED]


def test_an_advisory_that_applies_lets_no_engine_in_and_says_which_and_what_to_do() -> None:
    observed = watched(pool(), advisory())
    found = engine_allowed(observed)
    assert (found.status, found.reason) == (ConditionStatus.FALSE, Reason.ADVISORY_APPLIES)
    assert "KVF-2026-9001 (high): Pages of others are read." in found.message
    assert "Use an image with SGLang 0.5.24 or newer." in found.message
    assert "advisories.exemptions" in found.message
    assert decide(observed).step is None
    assert not any(version_of(engine, observed).holds for engine in observed.engines)
    assert conditions(observed)[ConditionType.STALLED].status is ConditionStatus.TRUE


def test_without_it_the_same_pool_goes_on() -> None:
    assert engine_allowed(watched(pool())).holds
    assert decide(watched(pool())).step is not None


def test_a_declared_release_is_refused_before_anything_is_started() -> None:
    observed = replace(watched(pool(), advisory()), engines=(), runs=False)
    assert not decide(observed).runs
    found = engine_allowed(observed)
    assert "It applies to SGLang 0.5.23, as engine.sglang.version says" in found.message


def test_what_runs_counts_where_nothing_is_declared() -> None:
    undeclared = spec(engine={"sglang": {"image": "registry.example/sglang:1"}})
    observed = watched(pool(spec=undeclared), advisory())
    assert "It applies to SGLang in pod decode-0" in engine_allowed(observed).message
    assert decide(replace(observed, engines=(), runs=False)).runs


def test_all_that_apply_are_named_the_gravest_first() -> None:
    critical = advisory("KVF-2026-9002", severity=Severity.CRITICAL, aliases=())
    message = engine_allowed(watched(pool(), advisory(), critical)).message
    assert message.startswith("KVF-2026-9002 (critical)")
    assert "So do KVF-2026-9001." in message


@pytest.mark.parametrize(
    "harmless",
    [
        advisory(severity=Severity.MEDIUM),
        advisory(closed_in_pools="the door refuses such requests"),
        advisory(withdrawn=NOW),
        advisory(affected=()),
        advisory(condition=InRole((RoleType.UNIFIED,))),
        advisory(condition=Value(Place.ENVIRONMENT, "SGLANG_X", Operator.TRUTHY)),
    ],
)
def test_what_is_less_grave_closed_withdrawn_or_about_something_else_blocks_nothing(harmless: Advisory) -> None:
    assert engine_allowed(watched(pool(), harmless)).holds


def test_what_no_server_tells_blocks_nothing_and_is_named() -> None:
    asked = advisory(condition=Asked("the model is an encoder-decoder"))
    found = engine_allowed(watched(pool(), asked))
    assert found.holds
    assert "Whether these apply no server tells (kvfence explain ID): KVF-2026-9001." in found.message


def test_warn_lets_engines_in_and_the_pool_says_that_it_is_weakened() -> None:
    observed = watched(pool(spec=spec(advisories={"action": "Warn"})), advisory())
    assert engine_allowed(observed).holds
    found = secured(observed)
    assert (found.status, found.reason) == (ConditionStatus.FALSE, Reason.ADVISORY_TOLERATED)
    assert "KVF-2026-9001" in found.message
    assert "advisories.action is Warn" in found.message


@pytest.mark.parametrize("name", ["KVF-2026-9001", "CVE-2026-9001"])
def test_an_exemption_by_id_or_alias_lets_engines_in_and_the_pool_says_so(name: str) -> None:
    observed = watched(pool(spec=spec(advisories={"exemptions": [EXEMPTION | {"id": name}]})), advisory())
    assert engine_allowed(observed).holds
    found = secured(observed)
    assert (found.status, found.reason) == (ConditionStatus.FALSE, Reason.ADVISORY_TOLERATED)
    assert f"exempts itself from {name}" in found.message
    assert "ada" not in found.message


def test_an_exemption_ends_by_itself() -> None:
    observed = watched(pool(spec=spec(advisories={"exemptions": [EXEMPTION]})), advisory())
    after = replace(observed.watchlist, now=datetime(2026, 12, 24, tzinfo=UTC))
    found = engine_allowed(replace(observed, watchlist=after))
    assert found.reason is Reason.ADVISORY_APPLIES
    assert "The pool's exemption from it ended at 2026-12-24" in found.message
    assert secured(replace(observed, watchlist=after)).holds


def test_an_exemption_from_what_is_not_known_is_told_with_what_to_do() -> None:
    found = secured(watched(pool(spec=spec(advisories={"exemptions": [EXEMPTION]}))))
    assert (found.status, found.reason) == (ConditionStatus.FALSE, Reason.ADVISORY_TOLERATED)
    assert "No grave advisory about engines is called KVF-2026-9001: correct the id" in found.message


def test_an_exemption_is_found_whatever_the_case_of_its_letters() -> None:
    observed = watched(pool(spec=spec(advisories={"exemptions": [EXEMPTION | {"id": "kvf-2026-9001"}]})), advisory())
    assert engine_allowed(observed).holds


@pytest.mark.parametrize("field", ["who", "reason"])
def test_an_exemption_that_nobody_answers_for_is_none_and_stops_nothing(field: str) -> None:
    blank = {"exemptions": [EXEMPTION | {field: " "}]}  # from before the API server refused it
    observed = watched(pool(spec=spec(advisories=blank)), advisory())
    assert engine_allowed(observed).reason is Reason.ADVISORY_APPLIES
    assert decide(observed).step is None


def test_a_part_of_which_no_server_tells_the_version_is_named_and_blocks_nothing() -> None:
    mooncake = advisory(affected=(Affected("mooncake-transfer-engine", (Span(None),)),))
    with_backend = replace(decode().facts or Facts(), settings={"disaggregation_transfer_backend": "mooncake"})
    found = engine_allowed(watched(pool(replace(decode(), facts=with_backend), prefill()), mooncake))
    assert found.holds
    assert "KVF-2026-9001" in found.message


@pytest.mark.parametrize("checksum", ["Enforce", "Observe"])
def test_what_comes_with_kvfence_blocks_no_pool_of_the_supported_release(checksum: str) -> None:
    told = {  # as kvfence starts them, whatever is then demanded
        "disaggregation_transfer_backend": "mooncake",
        "disaggregation_enable_kv_checksum": True,
        "enable_hierarchical_cache": False,
        "enable_lora": None,
        "speculative_algorithm": None,
    }
    engines = [replace(one, facts=replace(one.facts, settings=told)) for one in (decode(), prefill()) if one.facts]
    observed = pool(*engines, spec=spec(integrity={"kvChecksum": checksum}))
    assert engine_allowed(watched(observed, *packaged().advisories)).holds


def test_added_advisories_that_cannot_be_used_are_told_by_every_pool_and_block_nothing() -> None:
    observed = watched(pool(), problems=("Nothing of the added advisories is taken: its signature is not ours.", "B."))
    assert engine_allowed(observed).holds
    found = secured(observed)
    assert (found.status, found.reason) == (ConditionStatus.FALSE, Reason.ADVISORIES_INCOMPLETE)
    assert "its signature is not ours. And 1 more" in found.message


def test_the_gravest_counts_for_cutting_with_warn_and_not_with_an_exemption() -> None:
    critical = advisory("KVF-2026-9002", severity=Severity.CRITICAL, aliases=())
    warned = watched(pool(spec=spec(advisories={"action": "Warn"})), advisory(), critical)
    assert gravest(warned) == critical
    exempt = {"exemptions": [EXEMPTION | {"id": "KVF-2026-9002"}]}
    assert gravest(watched(pool(spec=spec(advisories=exempt)), advisory(), critical)) == advisory()
    assert gravest(watched(pool())) is None


def test_a_pool_that_is_cut_says_what_it_waits_for_when_its_engines_do_not_tell() -> None:
    silent = tuple(replace(one, facts=None) for one in pool().engines)
    found = conditions(replace(watched(pool(*silent)), serving=False, is_cut=True))[ConditionType.TRAFFIC_ADMITTED]
    assert found.reason is Reason.CUT_BY_ADVISORY
    assert "not every engine tells what it runs now" in found.message


def test_a_pool_that_is_cut_serves_nobody_and_says_why() -> None:
    observed = replace(watched(pool(), advisory(severity=Severity.CRITICAL)), serving=True, is_cut=True)
    decision = decide(observed)
    assert (decision.serves, decision.listed, decision.step) == (False, (), None)
    assert decision.runs
    found = conditions(observed)[ConditionType.TRAFFIC_ADMITTED]
    assert (found.status, found.reason) == (ConditionStatus.FALSE, Reason.CUT_BY_ADVISORY)
    assert "KVF-2026-9001 (critical)" in found.message
