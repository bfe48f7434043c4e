"""Settings come from the environment; what is wrong is named, with what to write instead."""

from __future__ import annotations

import pytest
from packaging.version import Version

import kvfence
from kvfence.app.settings import AdvisorySettings, SettingsError, settings_from
from kvfence.domain.advisories import CutLimit
from kvfence.domain.severity import Severity
from kvfence.domain.versions import DEFAULT_FLOORS

GIVEN = {
    "KVFENCE_NAMESPACE": "kvfence",
    "KVFENCE_POD_NAME": "kvfence-operator-1",
    "KVFENCE_ENGINE_IMAGE_REPOSITORY": "example.com/kvfence-engine",
    "KVFENCE_ROUTER_IMAGE": "example.com/smg:1",
    "KVFENCE_FRONT_IMAGE": "example.com/nginx:1",
    "KVFENCE_OPERATOR_LABELS": "app.kubernetes.io/name=kvfence,app.kubernetes.io/instance=one",
}


def test_what_is_not_said_has_a_default() -> None:
    read = settings_from(GIVEN | {"PATH": "/bin", "KVFENCE_OPERATOR_SERVICE_HOST": "10.0.0.1"})
    assert (read.namespace, read.pod_name) == ("kvfence", "kvfence-operator-1")
    assert (read.watch_namespaces, read.log_format, read.concurrent_reconciles) == ((), "json", 8)
    assert read.resync_seconds == 300
    assert read.floors == DEFAULT_FLOORS
    assert read.installation.plugin_version == kvfence.__version__
    assert read.installation.operator_namespace == "kvfence"
    assert read.installation.operator_labels == {
        "app.kubernetes.io/name": "kvfence",
        "app.kubernetes.io/instance": "one",
    }


def test_what_is_said_is_read() -> None:
    read = settings_from(
        GIVEN
        | {
            "KVFENCE_WATCH_NAMESPACES": "a, b,",
            "KVFENCE_LOG_FORMAT": "text",
            "KVFENCE_CONCURRENT_RECONCILES": "3",
            "KVFENCE_RESYNC_SECONDS": "1.5",
            "KVFENCE_MINIMUM_VERSION": "0.5.24",
            "KVFENCE_PLUGIN_VERSION": "0.9.0",
            "KVFENCE_OPERATOR_LABELS": "a=b, c=",
        }
    )
    assert read.watch_namespaces == ("a", "b")
    assert (read.log_format, read.concurrent_reconciles, read.resync_seconds) == ("text", 3, 1.5)
    assert (read.floors.enforce, read.floors.observe) == (Version("0.5.24"), Version("0.5.24"))
    assert read.installation.injection_image() == "example.com/kvfence-engine:0.9.0"
    assert read.installation.operator_labels == {"a": "b", "c": ""}


def test_an_empty_variable_is_as_one_that_is_not_there() -> None:
    assert settings_from(GIVEN | {"KVFENCE_LOG_FORMAT": "", "KVFENCE_MINIMUM_VERSION": ""}).log_format == "json"
    with pytest.raises(SettingsError, match="KVFENCE_NAMESPACE: Field required"):
        settings_from(GIVEN | {"KVFENCE_NAMESPACE": ""})


@pytest.mark.parametrize("name", GIVEN)
def test_what_has_no_default_is_asked_for_by_name(name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name}: Field required"):
        settings_from({key: value for key, value in GIVEN.items() if key != name})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("LOG_FORMAT", "xml", "'json' or 'text'"),
        ("CONCURRENT_RECONCILES", "many", "valid integer"),
        ("CONCURRENT_RECONCILES", "0", "greater than or equal to 1"),
        ("CONCURRENT_RECONCILES", "65", "less than or equal to 64"),
        ("RESYNC_SECONDS", "0.5", "greater than or equal to 1"),
        ("RESYNC_SECONDS", "nan", "Input should be"),
        ("RESYNC_SECONDS", "inf", "less than or equal to 86400"),
        ("RESYNC_SECONDS", "5m", "valid number"),
        ("OPERATOR_LABELS", "name", "write key=value,key=value"),
        ("OPERATOR_LABELS", "a=b,=c", "write key=value,key=value"),
        ("OPERATOR_LABELS", ",", "at least 1 item"),
        ("MINIMUM_VERSION", "0.5.22", "the floor with the checksum enforced is 0.5.23 at least, not 0.5.22"),
        ("MINIMUM_VERSION", "v0.5.24", "write a release such as 0.5.23, not 'v0.5.24'"),
        ("MINIMUM_VERSION", "0.5.24rc1", "write a release such as 0.5.23"),
        ("MINIMUM_VERSION", "latest", "write a release such as 0.5.23"),
        ("MINIMUM_VERSION", "9" * 5000, "MINIMUM_VERSION"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_expected(name: str, value: str, words: str) -> None:
    with pytest.raises(SettingsError) as raised:
        settings_from(GIVEN | {f"KVFENCE_{name}": value})
    assert f"KVFENCE_{name}: " in str(raised.value)
    assert words in str(raised.value)
    assert len(str(raised.value)) < 400


def test_every_wrong_variable_is_named_at_once() -> None:
    with pytest.raises(SettingsError) as raised:
        settings_from({})
    assert all(name in str(raised.value) for name in GIVEN)


def test_a_higher_floor_holds_for_pools_that_only_observe_too_and_the_floor_itself_changes_nothing() -> None:
    assert settings_from(GIVEN | {"KVFENCE_MINIMUM_VERSION": "0.5.23.post1"}).floors.observe == Version("0.5.23.post1")
    floors = settings_from(GIVEN | {"KVFENCE_MINIMUM_VERSION": "0.5.23"}).floors
    assert floors.enforce == DEFAULT_FLOORS.enforce
    assert floors.observe == Version("0.5.23")


KEY = "A" * 43 + "="


def test_added_advisories_and_how_many_pools_they_may_cut_are_read() -> None:
    read = settings_from(
        GIVEN
        | {
            "KVFENCE_ADVISORIES": "/etc/kvfence/advisories/advisories.json",
            "KVFENCE_ADVISORY_KEYS": f"{KEY},{KEY}",
            "KVFENCE_ADVISORY_CUT_SEVERITY": "critical",
            "KVFENCE_ADVISORY_CUT_LIMIT": "3",
        }
    ).advisories
    assert str(read.file) == "/etc/kvfence/advisories/advisories.json"
    assert read.public_keys == (KEY.encode(),) * 2
    assert read.cuts == CutLimit(Severity.CRITICAL, 3)


def test_without_them_nothing_is_added_and_nothing_is_cut() -> None:
    assert settings_from(GIVEN | {"KVFENCE_ADVISORY_CUT_LIMIT": "3"}).advisories == AdvisorySettings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ADVISORY_KEYS", "abc"),
        ("ADVISORY_KEYS", f"{KEY},{KEY},{KEY}"),
        ("ADVISORY_CUT_SEVERITY", "low"),
        ("ADVISORY_CUT_LIMIT", "0"),
    ],
)
def test_a_setting_of_advisories_that_is_wrong_is_named(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"KVFENCE_{name}"):
        settings_from(GIVEN | {f"KVFENCE_{name}": value})
