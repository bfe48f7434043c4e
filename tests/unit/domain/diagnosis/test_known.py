from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from packaging.version import Version

from kvfence.domain.advisories import Affected, Span
from kvfence.domain.advisories.conditions import Operator, Place, Value
from kvfence.domain.diagnosis.seen import Product
from tests.unit.domain.diagnosis.scenes import ADVISORY, decode, engine, prefill, report, router

UP_TO_19 = replace(ADVISORY, affected=(Affected("sglang", (Span(None, Version("0.5.20")),)),))
OF_SMG = replace(ADVISORY, id="KVF-2026-002", affected=(Affected("smg", (Span(None),)),))


def test_an_advisory_that_applies_is_a_finding_under_its_own_id() -> None:
    (finding,) = report(engine(version="0.5.19"), advisories=(UP_TO_19, OF_SMG)).findings
    assert (finding.id, finding.fix, finding.severity) == ("KVF-2026-001", "Upgrade.", UP_TO_19.severity)
    assert finding.message == "http://engine: Something is wrong."


def test_one_finding_names_both_halves_of_a_pair() -> None:
    found = report(prefill(version="0.5.19"), decode(version="0.5.19"), advisories=(UP_TO_19,)).findings
    (finding,) = [one for one in found if one.id == "KVF-2026-001"]
    assert finding.message.startswith("http://prefill and http://decode: ")


def test_an_advisory_of_which_it_cannot_be_told_is_missing_and_no_finding() -> None:
    told = report(engine(version=None), advisories=(UP_TO_19,))
    assert told.findings == ()
    assert any("whether 1 known fault applies is not known, since the version is not" in one for one in told.missing)


def test_what_hangs_on_a_setting_that_is_not_told_is_named_once_for_all() -> None:
    when_set = replace(UP_TO_19, condition=Value(Place.SETTING, "enable_lora", Operator.TRUTHY))
    other = replace(when_set, id="KVF-2026-003")
    (missing,) = [one for one in report(engine(version="0.5.19"), advisories=(when_set, other)).missing if "KVF" in one]
    assert missing == (
        "http://engine: whether KVF-2026-001, KVF-2026-003 apply depends on what was not told; "
        "kvfence explain KVF-2026-001 says on what."
    )


def test_an_advisory_that_does_not_apply_is_in_neither() -> None:
    told = report(engine(), advisories=(UP_TO_19,))
    assert told.findings == ()
    assert not any("KVF-2026-001" in one for one in told.missing)


def test_advisories_of_routers_are_judged_too() -> None:
    (finding,) = report(router(), advisories=(UP_TO_19, OF_SMG)).findings
    assert finding.message.startswith("http://router: ")


def test_what_is_open_at_a_router_is_told_to_conditions() -> None:
    when_open = replace(OF_SMG, condition=Value(Place.SETTING, "server_info_open", Operator.TRUTHY))
    assert {one.id for one in report(router(server_info_open=True), advisories=(when_open,)).findings} == {
        "ServerInfoOpen",
        "KVF-2026-002",
    }
    assert report(router(), advisories=(when_open,)).findings == ()
    assert report(router(server_info_open=None), advisories=(when_open,)).findings == ()


def test_that_a_key_is_set_is_told_to_conditions_and_its_value_is_not() -> None:
    when_set = replace(UP_TO_19, condition=Value(Place.SETTING, "api_key", Operator.TRUTHY))
    shown = engine(version="0.5.19", keys_shown=("api_key",))
    assert "KVF-2026-001" in {one.id for one in report(shown, advisories=(when_set,)).findings}
    assert report(engine(version="0.5.19"), advisories=(when_set,)).findings == ()


def test_what_nobody_made_has_no_known_faults() -> None:
    assert report(engine(product=None, version="0.5.19"), advisories=(UP_TO_19,)).findings == ()
    assert report(engine(product=Product.VLLM, version="0.5.19"), advisories=(UP_TO_19,)).findings == ()


def test_without_advisories_it_is_said_that_faults_are_not_told() -> None:
    assert any("No advisories" in one for one in report(engine(), advisories=()).missing)
    old = replace(ADVISORY, modified=datetime(2020, 1, 1, tzinfo=UTC))  # no fault has become known since, perhaps
    assert report(engine(), advisories=(old,)).missing == ()
