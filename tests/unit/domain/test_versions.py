"""The version floor: what is refused whatever a pool says, what the checksum on Observe lets in, and in which words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from kvfence.api.v1alpha1.conditions import ConditionStatus, ConditionType
from kvfence.api.v1alpha1.pool import IntegrityMode
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.domain.findings import Finding
from kvfence.domain.versions import Declared, Floors, declared_version, running_version

ENFORCE, OBSERVE = IntegrityMode.ENFORCE, IntegrityMode.OBSERVE
ALLOWED, OLD = Reason.VERSION_ALLOWED, Reason.VERSION_TOO_OLD
CHECKSUM, DEVELOPMENT = Reason.CHECKSUM_NOT_RELIABLE, Reason.DEVELOPMENT_VERSION
UNREADABLE = Reason.VERSION_UNREADABLE


def judged(
    version: str, mode: IntegrityMode = ENFORCE, minimum: str | None = None, floors: Floors | None = None
) -> Finding:
    finding = declared_version(Declared(version, minimum, mode), floors or Floors())
    assert finding.condition is ConditionType.ENGINE_ALLOWED
    assert finding.holds == (finding.reason is ALLOWED)
    assert finding.message.endswith((".", ".)"))
    return finding


@pytest.mark.parametrize(
    ("version", "enforced", "observed"),
    [
        ("0.5.19", OLD, OLD),
        ("0.5.20", OLD, OLD),
        ("0.5.20.post1", OLD, OLD),
        ("0.5.21", CHECKSUM, ALLOWED),
        ("0.5.22", CHECKSUM, ALLOWED),
        ("0.5.22.post3", CHECKSUM, ALLOWED),
        ("0.5.23", ALLOWED, ALLOWED),
        ("0.5.23.post1", ALLOWED, ALLOWED),
        ("v0.5.23", ALLOWED, ALLOWED),
        ("0.10.0", ALLOWED, ALLOWED),
        ("1.0", ALLOWED, ALLOWED),
        ("0.5.23rc1", DEVELOPMENT, DEVELOPMENT),
        ("0.5.24.dev12+gabcdef", DEVELOPMENT, DEVELOPMENT),
        ("0.5.24+gabcdef", DEVELOPMENT, DEVELOPMENT),
        ("0.0.0.dev0", DEVELOPMENT, DEVELOPMENT),
        ("1!0.1", UNREADABLE, UNREADABLE),
        ("latest", UNREADABLE, UNREADABLE),
        ("", UNREADABLE, UNREADABLE),
    ],
)
def test_a_release_is_judged_by_what_is_in_it(version: str, enforced: Reason, observed: Reason) -> None:
    assert judged(version).reason is enforced
    assert judged(version, OBSERVE).reason is observed


@pytest.mark.parametrize(
    ("version", "mode", "minimum", "reason"),
    [
        ("0.5.23", ENFORCE, "0.5.24", OLD),
        ("0.5.24", ENFORCE, "0.5.24", ALLOWED),
        ("0.5.22", OBSERVE, "0.5.23", OLD),
        ("0.5.22", ENFORCE, "0.5.23", OLD),  # Observe would not help, and is not proposed
        ("0.5.22", ENFORCE, "0.5.22", CHECKSUM),
        ("0.5.20", OBSERVE, "0.5.1", OLD),  # a minimum lowers nothing
        ("0.5.22", ENFORCE, "0.0.1", CHECKSUM),
        ("0.5.23", ENFORCE, "newest", UNREADABLE),
    ],
)
def test_a_minimum_of_the_pool_raises_the_floor_only(
    version: str, mode: IntegrityMode, minimum: str, reason: Reason
) -> None:
    assert judged(version, mode, minimum).reason is reason


def test_the_words_say_what_to_do() -> None:
    old, checksum = judged("0.5.19").message, judged("0.5.22").message
    assert "0.5.19" in old
    assert "Use an image with 0.5.23 or newer" in old
    assert "set integrity.kvChecksum to Observe" in checksum
    assert "Secured=False" in checksum
    assert "(The kvfence-engine of today starts with 0.5.23 alone.)" in checksum
    assert "starts with" not in old
    assert "Observe" not in judged("0.5.22", ENFORCE, "0.5.23").message
    assert "engine.sglang.minimumVersion" in judged("0.5.23", ENFORCE, "newest").message
    assert "release of SGLang" in judged("0.5.23rc1").message


def test_a_cluster_may_raise_its_floor() -> None:
    raised = Floors(enforce=Version("0.5.24"), observe=Version("0.5.22"))
    assert judged("0.5.23", floors=raised).reason is CHECKSUM
    assert judged("0.5.21", OBSERVE, floors=raised).reason is OLD
    assert judged("0.5.24", floors=raised).reason is ALLOWED


@pytest.mark.parametrize("lowered", [{"enforce": Version("0.5.22")}, {"observe": Version("0.5.20")}])
def test_a_cluster_may_not_lower_it(lowered: dict[str, Version]) -> None:
    with pytest.raises(ValueError, match="at least, not 0"):
        Floors(**lowered)


def test_nothing_declared_is_unknown_and_not_passed() -> None:
    finding = declared_version(Declared(None, None, ENFORCE))
    assert (finding.status, finding.reason) == (ConditionStatus.UNKNOWN, Reason.VERSION_NOT_KNOWN)
    assert not finding.holds


@pytest.mark.parametrize(
    ("running", "declared", "reason"),
    [
        ("0.5.23", "0.5.23", ALLOWED),
        ("0.5.23", None, ALLOWED),
        ("0.5.24", "0.5.23", Reason.VERSION_NOT_AS_DECLARED),
        ("0.5.19", "0.5.23", OLD),
        ("0.5.24.dev1", "0.5.24", DEVELOPMENT),
        (None, "0.5.23", Reason.VERSION_NOT_KNOWN),
    ],
)
def test_what_runs_is_judged_whatever_was_declared(running: str | None, declared: str | None, reason: Reason) -> None:
    finding = running_version(running, "prefill-0", Declared(declared, None, ENFORCE))
    assert finding.reason is reason
    assert finding.holds == (reason is ALLOWED)
    assert "prefill-0" in finding.message


def test_what_an_engine_says_of_itself_is_quoted_short_and_on_one_line() -> None:
    finding = running_version("x\n" * 5000, "prefill-0", Declared(None, None, ENFORCE))
    assert finding.reason is UNREADABLE
    assert "\n" not in finding.message
    assert len(finding.message) < 300


@given(
    st.text(max_size=40)
    | st.from_regex(r"[0-9]{1,2}(\.[0-9]{1,3}){0,3}(rc[0-9]|\.post[0-9]|\.dev[0-9])?", fullmatch=True)
)
def test_no_text_is_let_in_below_the_oldest_release(text: str) -> None:
    if judged(text, OBSERVE).holds:
        assert Version(text) >= Version("0.5.21")
    if judged(text).holds:
        assert Version(text) >= Version("0.5.23")
        assert judged(text, OBSERVE).holds
