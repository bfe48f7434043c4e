"""The gate IntegrityEnforced asks every rank for evidence of what the pool enforces; Secured says what is left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kvfence.api.v1alpha1.conditions import ConditionStatus
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.domain.decisions import decide
from kvfence.domain.engines import Attested, Engine, Facts
from kvfence.domain.integrity import integrity_enforced
from kvfence.domain.observed import Observed
from kvfence.domain.summary import secured
from tests.unit.domain.pools_of_engines import attested, decode, engine, pool, prefill, serving, spec

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN
MODES = ("pageTagging", "pageScrubbing", "coverage")


def saying(one: Engine, *ranks: Attested | None) -> Engine:
    """The same engine, of which ranks say this; the last for all further ones."""
    assert one.boot is not None
    said = [replace(rank, attested=ranks[min(at, len(ranks) - 1)]) for at, rank in enumerate(one.boot.ranks)]
    return replace(one, boot=replace(one.boot, ranks=tuple(said)))


def of_two_ranks() -> Engine:
    """A decode engine with two ranks."""
    one = decode()
    assert one.boot is not None
    first = one.boot.ranks[0]
    return replace(one, boot=replace(one.boot, ranks=(first, replace(first, index=1))))


def modes(**changes: str) -> Attested:
    """What a rank says that has other modes."""
    return attested(modes=dict.fromkeys(MODES, "Enforce") | changes)


def test_a_pool_whose_ranks_all_attest_all_of_it_passes() -> None:
    finding = integrity_enforced(pool(of_two_ranks(), prefill()))
    assert (finding.status, finding.reason) == (TRUE, Reason.DEFENCES_ENFORCED)
    assert "attest the KV checksum and pageTagging, pageScrubbing, coverage." in finding.message


@pytest.mark.parametrize("said", [None, attested(self_tested=False)])
def test_a_rank_that_says_nothing_or_did_not_try_its_defences_is_none(said: Attested | None) -> None:
    one = saying(of_two_ranks(), attested(), said)
    finding = integrity_enforced(pool(one, prefill()))
    assert (finding.status, finding.reason) == (FALSE, Reason.PAGE_DEFENCE_NOT_ATTESTED)
    assert "Rank 1 of pod decode-0" in finding.message


def test_an_engine_without_ranks_attests_nothing() -> None:
    one = decode()
    assert one.boot is not None
    finding = integrity_enforced(pool(replace(one, boot=replace(one.boot, ranks=())), prefill()))
    assert (finding.status, finding.reason) == (FALSE, Reason.PAGE_DEFENCE_NOT_ATTESTED)


@pytest.mark.parametrize("name", MODES)
@pytest.mark.parametrize("mode", ["Observe", "Disabled", "", "enforce", "Whatever"])
def test_a_rank_with_a_weaker_mode_than_the_pool_asks_for_is_named(name: str, mode: str) -> None:
    finding = integrity_enforced(pool(decode(), saying(prefill(), modes(**{name: mode}))))
    assert (finding.status, finding.reason) == (FALSE, Reason.PAGE_DEFENCE_OFF)
    assert f"{name} is {mode or 'not there'}" in finding.message


@pytest.mark.parametrize("name", MODES)
def test_what_the_pool_only_observes_may_be_enforced_and_not_left_out(name: str) -> None:
    observes = spec(integrity={name: "Observe"})
    for mode, reason in {"Observe": Reason.DEFENCES_ENFORCED, "Disabled": Reason.PAGE_DEFENCE_OFF}.items():
        one = saying(decode(), modes(**{name: mode}))
        finding = integrity_enforced(pool(one, prefill(), spec=observes))
        assert finding.reason is reason
    assert f"of these only observed: {name}" in integrity_enforced(pool(decode(), prefill(), spec=observes)).message


def test_a_pool_that_disables_all_demands_the_checksum_alone() -> None:
    none = spec(integrity=dict.fromkeys(MODES, "Disabled"))
    finding = integrity_enforced(pool(saying(decode(), None), saying(prefill(), None), spec=none))
    assert (finding.status, finding.reason) == (TRUE, Reason.CHECKSUM_ENFORCED)


def test_ranks_that_have_not_repeated_the_nonce_are_waited_for() -> None:
    one = decode()
    assert one.facts is not None
    finding = integrity_enforced(pool(replace(one, facts=replace(one.facts, repeats_nonce=False)), prefill()))
    assert (finding.status, finding.reason) == (UNKNOWN, Reason.PAGE_DEFENCE_NOT_ATTESTED)


@pytest.mark.parametrize(
    ("expected", "verified", "found", "reason"),
    [
        (10, 10, {}, Reason.DEFENCES_ENFORCED),
        (10, 9, {}, Reason.PAGES_NOT_TAGGED),
        (10, 9, {"ForeignPage": 1}, Reason.WRONG_PAGES_FOUND),
        (10, 8, {"ForeignPage": 1}, Reason.PAGES_NOT_TAGGED),
        (10, 8, {"ForeignPage": 1, "UnwrittenPage": 1}, Reason.WRONG_PAGES_FOUND),
        (10, 10, {"Coverage": 3}, Reason.DEFENCES_ENFORCED),  # a client can bring it about
        (10, 10, {"OtherBytes": 1, "Coverage": 3}, Reason.WRONG_PAGES_FOUND),
    ],
)
def test_pages_that_nobody_verified_and_wrong_ones_are_told_apart(
    expected: int, verified: int, found: dict[str, int], reason: Reason
) -> None:
    counts = dict(attested().counts) | {"pagesExpected": expected, "pagesVerified": verified}
    finding = integrity_enforced(pool(saying(decode(), attested(counts=counts, found=found)), prefill()))
    assert finding.reason is reason
    assert finding.holds == (reason is not Reason.PAGES_NOT_TAGGED)


def test_an_older_plugin_serves_on_and_the_pool_says_so() -> None:
    old: dict[str, Any] = {"plugin_version": "0.1.0.dev0", "newest_plugin_version": "0.1.0"}
    observed = replace(serving(), **old)
    silent = replace(observed, engines=tuple(saying(one, None) for one in observed.engines))
    assert integrity_enforced(silent).reason is Reason.CHECKSUM_ENFORCED
    assert decide(silent).serves
    finding = secured(silent)
    assert (finding.status, finding.reason) == (FALSE, Reason.PLUGIN_OUTDATED)
    assert "set engine.sglang.pluginVersion to 0.1.0" in finding.message


@pytest.mark.parametrize("name", MODES)
@pytest.mark.parametrize("mode", ["Observe", "Disabled"])
def test_a_weakened_defence_is_said_by_secured(name: str, mode: str) -> None:
    finding = secured(pool(spec=spec(integrity={name: mode})))
    assert (finding.status, finding.reason) == (FALSE, Reason.DEFENCES_WEAKENED)
    assert f"integrity.{name}" in finding.message


def test_a_pool_with_all_defences_is_secured() -> None:
    assert secured(pool()).holds


def test_a_boot_that_does_not_attest_is_let_in_nowhere_and_one_that_serves_is_not_cut() -> None:
    def without(observed: Observed) -> Observed:
        return replace(observed, engines=tuple(saying(one, None) for one in observed.engines))

    coming = decide(without(pool()))
    assert coming.step is None
    assert not coming.listed
    goes_on = decide(without(serving()))
    assert goes_on.serves
    assert len(goes_on.listed) == len(serving().engines)


def test_an_engine_that_was_not_asked_is_not_judged() -> None:
    silent = replace(engine(decode().type), facts=None)
    assert integrity_enforced(pool(silent, replace(prefill(), facts=None))).status is UNKNOWN
    assert Facts().repeats_nonce is False
