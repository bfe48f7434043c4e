"""To what an advisory applies: by the package, by what the running server says of its version, by the condition."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.advisories import Applies, Subject, judge, parse, with_components
from tests.unit.domain.advisories.osv_documents import conditioned, document, ranged

calmly = settings(deadline=None)  # a busy machine is no failure

YES, NO, UNKNOWN = Applies.YES, Applies.NO, Applies.UNKNOWN
FIXED = parse(ranged({"introduced": "0"}, {"fixed": "0.5.20"}))

VERSIONS = {
    "0.5.19": YES,
    "v0.5.19": YES,
    "0.5.19.post1": YES,
    "0.5.20": NO,
    "0.5.20.post1": NO,
    "0.5.20rc1": UNKNOWN,
    "0.5.24.dev12+g1a2b3c": UNKNOWN,
    "0.5.23+cu130": UNKNOWN,
    "1!0.1": UNKNOWN,
    "main": UNKNOWN,
    "": UNKNOWN,
    "9" * 5000: UNKNOWN,
    "0.5.23\x1b[2J": UNKNOWN,
    None: UNKNOWN,
}


@pytest.mark.parametrize(("version", "applies"), VERSIONS.items(), ids=lambda value: str(value)[:20])
def test_the_version_that_the_server_says_is_judged(version: str | None, applies: Applies) -> None:
    judgement = judge(FIXED, Subject("sglang", version))
    assert judgement.applies is applies
    assert judgement.why.isprintable()
    assert len(judgement.why) < 200


def test_another_package_is_not_affected_and_names_are_normalised() -> None:
    assert judge(FIXED, Subject("vllm", "0.5.19")).applies is NO
    assert judge(FIXED, Subject("vllm", None)).applies is NO
    router = parse(ranged({"introduced": "0"}, name="sglang_router"))
    assert judge(router, Subject("Sglang.Router", "0.3.2")).applies is YES


def test_what_is_withdrawn_applies_to_nothing() -> None:
    withdrawn = parse(document(withdrawn="2026-11-02T00:00:00Z"))
    for version in ("0.5.12", None, "main"):
        judgement = judge(withdrawn, Subject("sglang", version))
        assert judgement.applies is NO
        assert "2026-11-02" in judgement.why


def applies(condition: object, **told: Any) -> Applies:
    """Judge a condition alone, with a release that is affected."""
    return judge(parse(conditioned(condition)), Subject("sglang", "0.5.19", **told)).applies


SETTINGS: list[tuple[object, dict[str, Any], Applies]] = [
    ({"setting": "a", "truthy": True}, {"a": True}, YES),
    ({"setting": "a", "truthy": True}, {"a": False}, NO),
    ({"setting": "a", "truthy": True}, {"a": None}, NO),
    ({"setting": "a", "truthy": True}, {"a": "False"}, NO),
    ({"setting": "a", "truthy": True}, {"a": "x"}, YES),
    ({"setting": "a", "truthy": True}, {"a": []}, NO),
    ({"setting": "a", "truthy": True}, {"a": {"b": 1}}, YES),
    ({"setting": "a", "truthy": True}, {"a": object()}, UNKNOWN),
    ({"setting": "a", "truthy": True}, {}, UNKNOWN),
    ({"setting": "a", "present": True}, {"a": False}, YES),
    ({"setting": "a", "present": True}, {"a": None}, NO),
    ({"setting": "a", "present": True}, {}, UNKNOWN),
    ({"setting": "a", "equals": "nixl"}, {"a": "NIXL"}, YES),
    ({"setting": "a", "equals": "nixl"}, {"a": None}, NO),
    ({"setting": "a", "equals": 1}, {"a": True}, NO),
    ({"setting": "a", "equals": 1}, {"a": 1.0}, YES),
    ({"setting": "a", "equals": 1}, {"a": [1]}, NO),
    ({"setting": "a", "greater": 4}, {"a": 5}, YES),
    ({"setting": "a", "greater": 4}, {"a": 4}, NO),
    ({"setting": "a", "greater": 4}, {"a": "5"}, YES),
    ({"setting": "a", "greater": 4}, {"a": "many"}, UNKNOWN),
    ({"setting": "a", "greater": 4}, {"a": None}, UNKNOWN),
    ({"setting": "a", "greater": 4}, {"a": True}, UNKNOWN),
    ({"setting": "a", "greater": 4}, {"a": float("nan")}, UNKNOWN),
    ({"setting": "a", "greater": 4}, {"a": 10**400}, YES),
    ({"backend": ["nixl", "mori"]}, {"disaggregation_transfer_backend": "Mori"}, YES),
    ({"backend": ["nixl"]}, {"disaggregation_transfer_backend": "mooncake"}, NO),
    ({"backend": ["nixl"]}, {}, UNKNOWN),
]


@pytest.mark.parametrize(("condition", "told", "expected"), SETTINGS, ids=lambda value: str(value)[:40])
def test_a_condition_is_judged_on_what_is_told(condition: object, told: dict[str, Any], expected: Applies) -> None:
    assert applies(condition, settings=told) is expected


def test_roles_and_variables_are_told_or_unknown() -> None:
    decode = {"role": ["Decode"]}
    assert [applies(decode, role=role) for role in (RoleType.DECODE, RoleType.PREFILL, None)] == [YES, NO, UNKNOWN]
    variable = {"environment": "EARLY", "equals": "0"}
    told: list[dict[str, str]] = [{"EARLY": "0"}, {"EARLY": "1"}, {"OTHER": "0"}, {}]
    assert [applies(variable, environment=one) for one in told] == [YES, NO, UNKNOWN, UNKNOWN]


def test_what_only_people_know_is_never_claimed_and_never_forgotten() -> None:
    judgement = judge(parse(conditioned({"asked": "the model is a DeepSeek V4"})), Subject("sglang", "0.5.19"))
    assert judgement.applies is UNKNOWN
    assert judgement.why == "No server tells whether the model is a DeepSeek V4."


ANSWERS = {YES: {"setting": "yes", "truthy": True}, NO: {"setting": "no", "truthy": True}, UNKNOWN: {"asked": "x"}}
three = st.sampled_from(Applies)


@calmly
@given(st.lists(three, min_size=1, max_size=5))
def test_all_any_and_not_have_the_three_answers_of_kleene(parts: list[Applies]) -> None:
    rank = {NO: 0, UNKNOWN: 1, YES: 2}
    told = {"yes": True, "no": False}
    conditions = [ANSWERS[part] for part in parts]
    assert applies({"all": conditions}, settings=told) is min(parts, key=rank.__getitem__)
    assert applies({"any": conditions}, settings=told) is max(parts, key=rank.__getitem__)
    opposite = {YES: NO, NO: YES, UNKNOWN: UNKNOWN}[parts[0]]
    assert applies({"not": conditions[0]}, settings=told) is opposite


TOLD_VERSIONS = st.none() | st.sampled_from(["0.5.19", "0.5.23", "0.5.24.dev1", "no"])


@calmly
@given(TOLD_VERSIONS, three)
def test_a_no_of_version_or_condition_decides_and_an_unknown_is_never_a_yes(version: str | None, part: Applies) -> None:
    section = {"severity": "high", "whatToDo": "x", "condition": ANSWERS[part]}
    advisory = parse(ranged({"introduced": "0"}, {"fixed": "0.5.20"}) | {"database_specific": {"kvfence": section}})
    by_version = {"0.5.19": YES, "0.5.23": NO}.get(version or "", UNKNOWN)
    judgement = judge(advisory, Subject("sglang", version, settings={"yes": True, "no": False}))
    expected = NO if NO in {by_version, part} else UNKNOWN if UNKNOWN in {by_version, part} else YES
    assert judgement.applies is expected


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.just(object()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@calmly
@given(st.none() | st.text(), st.none() | st.sampled_from(RoleType), json_like, st.sampled_from(SETTINGS))
def test_a_judgement_is_made_whatever_the_server_says(version: Any, role: Any, said: Any, case: Any) -> None:
    subject = Subject("sglang", version, role, {"a": said, "disaggregation_transfer_backend": said}, {"a": said})
    judgement = judge(parse(conditioned(case[0])), subject)
    assert judgement.applies in Applies
    assert judgement.why.isprintable()


def test_a_judgement_quotes_no_value_that_was_told() -> None:
    secret = "sk-marker-of-our-own"
    for condition in (
        {"setting": "api_key", "equals": "other"},
        {"setting": "api_key", "present": True},
        {"setting": "api_key", "greater": 1},
        {"environment": "api_key", "truthy": True},
    ):
        subject = Subject("sglang", "0.5.19", None, {"api_key": secret}, {"api_key": secret})
        assert secret not in judge(parse(conditioned(condition)), subject).why
        assert secret not in repr(subject)


def test_parts_of_an_engine_are_judged_with_a_version_that_nobody_tells() -> None:
    settings = {"disaggregation_transfer_backend": "NIXL", "enable_lmcache": True}
    found = with_components(Subject("sglang", "0.5.23", RoleType.DECODE, settings))
    assert [(one.package, one.version) for one in found] == [("sglang", "0.5.23"), ("nixl", None), ("lmcache", None)]
    alone = Subject("sglang", "0.5.23", RoleType.UNIFIED, {"disaggregation_transfer_backend": "mooncake"})
    assert with_components(alone) == (alone,)
    router = Subject("smg", "1.13.0", None, settings)
    assert with_components(router) == (router,)
