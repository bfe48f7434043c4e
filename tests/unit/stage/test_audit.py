"""Requests are counted from the audit log, from a point on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster.audit import AuditLog, Request
from e2e.errors import StageError


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    (tmp_path / "audit.log").touch()
    return AuditLog(tmp_path / "audit.log")


def answer(log: AuditLog, verb: str, **about: Any) -> None:
    event = {"verb": verb, "user": {"username": "ann"}, **({"objectRef": about} if about else {})}
    with log.path.open("a") as handle:
        handle.write(json.dumps(event) + "\n")


def test_a_request_has_who_asked_what_of_which_object(log: AuditLog) -> None:
    answer(log, "patch", resource="pods", namespace="ns", name="it")
    assert list(log.since(0)) == [Request("ann", "patch", "pods", "ns", "it")]


def test_only_what_was_answered_after_the_position_counts(log: AuditLog) -> None:
    answer(log, "create", resource="pods")
    position = log.position()
    assert list(log.since(position)) == []
    answer(log, "delete", resource="pods")
    assert [request.verb for request in log.since(position)] == ["delete"]


def test_a_request_that_is_about_no_object_is_read_too(log: AuditLog) -> None:
    answer(log, "get")
    assert list(log.since(0)) == [Request("ann", "get", "", "", "")]


@pytest.mark.parametrize(
    ("verb", "writes"),
    [
        *((verb, True) for verb in ("create", "update", "patch", "delete", "deletecollection")),
        *((verb, False) for verb in ("get", "list", "watch")),
    ],
)
def test_writes_are_told_from_reads(verb: str, writes: bool, log: AuditLog) -> None:
    answer(log, verb, resource="pods")
    assert [request.is_write for request in log.since(0)] == [writes]


def test_a_log_that_was_begun_anew_counts_nothing_and_says_so(log: AuditLog) -> None:
    answer(log, "create", resource="pods")
    position = log.position()
    log.path.write_text("")
    answer(log, "get")
    assert 0 < log.position() < position
    with pytest.raises(StageError, match=f"^{log.path} ends before byte {position}: it was begun anew"):
        list(log.since(position))


def test_a_line_that_is_still_being_written_ends_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    whole = json.dumps({"user": {"username": "admin"}, "verb": "create", "objectRef": {"resource": "pods"}})
    path.write_text(f"{whole}\n{whole[:20]}")
    assert [one.verb for one in AuditLog(path).since(0)] == ["create"]
