from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from kvfence.kube.events import event

NOW = datetime(2026, 11, 30, tzinfo=UTC)
POOL: dict[str, Any] = {
    "apiVersion": "kvfence.io/v1alpha1",
    "kind": "InferencePool",
    "metadata": {"name": "shop", "namespace": "a", "uid": "u"},
}


def test_an_event_says_what_it_is_about_and_when() -> None:
    told = event(POOL, "ContextFits", "it fits", warning=False, now=NOW)
    assert told["regarding"] == {
        "apiVersion": "kvfence.io/v1alpha1",
        "kind": "InferencePool",
        "name": "shop",
        "namespace": "a",
        "uid": "u",
    }
    assert told["metadata"]["namespace"] == "a"
    assert told["eventTime"] == "2026-11-30T00:00:00.000000+00:00"
    assert (told["type"], told["reason"], told["note"]) == ("Normal", "ContextFits", "it fits")
    assert all(told[key] for key in ("action", "reportingController", "reportingInstance"))
    assert event(POOL, "ContextFits", "it fits", warning=True, now=NOW)["type"] == "Warning"


def test_another_event_has_another_name() -> None:
    def name(reason: str = "R", message: str = "m", later: int = 0) -> str:
        told = event(POOL, reason, message, warning=False, now=NOW + timedelta(microseconds=later))
        named: str = told["metadata"]["name"]
        return named

    assert name() == name()
    assert len({name(), name(reason="S"), name(message="n"), name(later=1)}) == 4


def test_a_long_note_and_a_long_name_are_cut_to_what_the_api_server_takes() -> None:
    long = POOL | {"metadata": POOL["metadata"] | {"name": "a." * 126 + "a"}}
    told = event(long, "R" * 200, "ü" * 1000 + "\ud800", warning=False, now=NOW, instance="i" * 200)
    assert len(told["note"].encode()) <= 1024
    assert told["note"].endswith("...")
    assert len(told["metadata"]["name"]) <= 253
    assert ".." not in told["metadata"]["name"]
    assert max(len(told[key]) for key in ("reason", "action", "reportingInstance")) == 128
