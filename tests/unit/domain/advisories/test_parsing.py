"""What is read as an advisory, and what is refused with a sentence that names it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvfence.domain.advisories import Advisory, Applies, Subject, judge, parse
from kvfence.domain.severity import Severity
from tests.unit.domain.advisories.osv_documents import SOUND, conditioned, document, ranged

calmly = settings(deadline=None)  # a busy machine is no failure

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return every place in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(deeper for key, inner in items for deeper in paths(inner, (*path, key)))]


FULL = conditioned(
    {
        "all": [
            {"role": ["Prefill"]},
            {"any": [{"setting": "dcp_size", "greater": 1}, {"environment": "A", "equals": "1"}]},
            {"not": {"setting": "api_key", "present": True}},
            {"backend": ["nixl"]},
            {"asked": "it rains"},
        ]
    }
)


def replaced(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """Return a copy with something else in one place."""
    if not path:
        return other
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = replaced(value[path[0]], path[1:], other)
    return copied


def test_a_sound_document_is_read_whole() -> None:
    found = parse(document(withdrawn="2026-11-02T00:00:00+01:00"))
    assert (found.id, found.aliases, found.summary) == ("KVF-2026-9001", ("CVE-2026-99999",), "A fault")
    assert found.severity is Severity.HIGH
    assert found.affected[0].package == "sglang"
    assert str(found.affected[0]) == "0.5.11 and newer, before 0.5.20"
    assert found.modified == datetime(2026, 11, 1, tzinfo=UTC)
    assert found.withdrawn == datetime(2026, 11, 1, 23, tzinfo=UTC)
    assert found.references == ("https://github.com/sgl-project/sglang/issues/1",)
    assert (found.what_to_do, found.condition) == ("Run 0.5.23.", None)


def package(**changed: Any) -> dict[str, Any]:
    """Return a document whose package says something else."""
    return document(affected=[SOUND["affected"][0] | changed])


def events(*several: Any) -> dict[str, Any]:
    """Return a document with these events."""
    return package(ranges=[{"type": "ECOSYSTEM", "events": list(several)}])


REFUSED: dict[str, tuple[Any, str]] = {
    "no object": ([], "it is missing or not an object"),
    "no id": (document(id=""), "its id"),
    "an id with a line end": (document(id="KVF\n1"), "its id"),
    "a field that OSV has not": (document(affectd=[]), '"affectd" that is not known'),
    "another schema": (document(schema_version="2.0"), "schema_version"),
    "no time of change": (document(modified="yesterday"), "modified is not a time"),
    "a day that is none": (document(modified="2026-02-30T00:00:00Z"), "modified is not a time"),
    "a time without its offset": (document(modified="2026-11-01T00:00:00"), "modified is not a time"),
    "withdrawn with a null": (document(withdrawn=None), "withdrawn is not a time"),
    "no summary": (document(summary=" "), "summary is missing"),
    "a summary that moves the cursor": (document(summary="\x1b[2J"), "cannot be printed"),
    "details without end": (document(details="a" * 9000), "more than 8192"),
    "details that ring": (document(details="a\nb\x07"), "cannot be printed"),
    "an alias that is none": (document(aliases=["a b"]), "aliases"),
    "no references": (document(references=[]), "references has 0 items"),
    "a reference that is no address": (document(references=[{"type": "WEB", "url": "javascript:1"}]), "https://"),
    "a reference of no type": (document(references=[{"type": "SONG", "url": "https://a.b"}]), "OSV does not know"),
    "no section of ours": (document(database_specific={}), "database_specific.kvfence is missing"),
    "no severity": (document(database_specific={"kvfence": {"whatToDo": "x"}}), "critical, high, medium, low"),
    "nothing to do": (document(database_specific={"kvfence": {"severity": "low"}}), "whatToDo is missing"),
    "closed in pools without saying how": (
        document(database_specific={"kvfence": {"severity": "low", "whatToDo": "x", "closedInPools": ""}}),
        "closedInPools is missing",
    ),
    "a slip in our section": (
        document(database_specific={"kvfence": {"severity": "low", "whatToDo": "x", "conditon": {}}}),
        '"conditon" that is not known',
    ),
    "nothing affected": (document(affected=[]), "affected has 0 items"),
    "another ecosystem": (package(package={"ecosystem": "npm", "name": "sglang"}), "not PyPI"),
    "neither ranges nor versions": (package(ranges=[]), "neither ranges nor versions"),
    "a range of commits": (package(ranges=[{"type": "GIT", "events": [{"introduced": "0"}]}]), "not ECOSYSTEM"),
    "fixed before it began": (events({"fixed": "0.5.20"}), "in turn"),
    "introduced twice": (events({"introduced": "0"}, {"introduced": "0.5.1"}), "in turn"),
    "two ends": (events({"introduced": "0"}, {"fixed": "0.5.1"}, {"fixed": "0.5.2"}), "in turn"),
    "both kinds of end": (
        events({"introduced": "0"}, {"fixed": "1"}, {"introduced": "2"}, {"last_affected": "3"}),
        "both fixed and last_affected",
    ),
    "two events at one version": (events({"introduced": "0.5.1"}, {"fixed": "0.5.1.0"}), "same version"),
    "an event of two kinds": (events({"introduced": "0", "fixed": "1"}), "has to be one of"),
    "a limit, which is of branches": (events({"introduced": "0"}, {"limit": "*"}), "not known"),
    "a version that is none": (events({"introduced": "new"}), "no release"),
    "a version with an epoch": (events({"introduced": "1!0"}), "no release"),
    "a version that is a number": (events({"introduced": 0}), "a version is missing or not text"),
    "a version of too many digits": (events({"introduced": "1" * 64 + "x"}), "more than 64"),
    "a condition that is none": (conditioned([]), "a condition is missing"),
    "an empty condition": (conditioned({}), "has to be one of"),
    "all of nothing": (conditioned({"all": []}), "all or any has 0 items"),
    "an operator that is none": (conditioned({"setting": "a", "less": 1}), "needs one of"),
    "two operators": (conditioned({"setting": "a", "truthy": True, "present": True}), "needs one of"),
    "truthy with false": (conditioned({"setting": "a", "truthy": False}), "a not around it"),
    "greater than a word": (conditioned({"setting": "a", "greater": "1"}), "needs a number"),
    "greater than no number": (conditioned({"setting": "a", "greater": float("nan")}), "needs a number"),
    "equal to null": (conditioned({"setting": "a", "equals": None}), "equals needs"),
    "a variable equal to a number": (conditioned({"environment": "A", "equals": 1}), "needs text"),
    "a role that is none": (conditioned({"role": ["prefill"]}), "Prefill, Decode, Unified"),
    "a name with a space": (conditioned({"setting": "a b", "truthy": True}), "name of a setting"),
    "a kind that is none": (conditioned({"model": "x"}), '"model" that is not known'),
    "too deep": (conditioned({"not": {"not": {"not": {"not": {"not": {"not": {"not": {"asked": "x"}}}}}}}}), "deep"),
}


@pytest.mark.parametrize(("bad", "said"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_judged_is_refused_by_name(bad: Any, said: str) -> None:
    with pytest.raises(ValueError, match="Advisory ") as refused:
        parse(bad)
    message = str(refused.value)
    assert said in message
    assert message.endswith(".")
    assert message.isprintable()
    if isinstance(bad, dict) and bad["id"] == SOUND["id"]:
        assert message.startswith("Advisory KVF-2026-9001: ")


@calmly
@given(st.sampled_from(paths(FULL)), anything)
def test_a_document_with_anything_in_any_place_is_an_advisory_or_refused(path: tuple[Any, ...], other: Any) -> None:
    changed = replaced(FULL, path, other)
    try:
        found = parse(changed)
    except ValueError as error:
        assert str(error).isprintable()  # noqa: PT017 - it may be an advisory as well
    else:
        assert isinstance(found, Advisory)
        assert judge(found, Subject("sglang", "0.5.19")).applies in Applies


@calmly
@given(anything)
def test_anything_at_all_is_refused_in_a_sentence(other: Any) -> None:
    with pytest.raises(ValueError, match=r"^Advisory .*\.$"):
        parse(other)


def test_single_versions_count_besides_ranges() -> None:
    entry = SOUND["affected"][0] | {"versions": ["0.5.2", "0.5.3"]}
    found = parse(document(affected=[entry]))
    for version, applies in {"0.5.2": Applies.YES, "0.5.4": Applies.NO, "0.5.12": Applies.YES}.items():
        assert judge(found, Subject("sglang", version)).applies is applies


def test_how_pools_are_safe_from_it_is_read_where_it_is_said() -> None:
    section = {"severity": "low", "whatToDo": "x", "closedInPools": "The door refuses it."}
    assert parse(document(database_specific={"kvfence": section})).closed_in_pools == "The door refuses it."
    assert parse(document()).closed_in_pools == ""


def test_an_open_range_is_legal_and_has_no_end() -> None:
    found = parse(ranged({"introduced": "0"}))
    assert judge(found, Subject("sglang", "99.0")).applies is Applies.YES
    assert str(found.affected[0]) == "all releases"
