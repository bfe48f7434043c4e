from __future__ import annotations

import json
from typing import Any

import pytest

from kvfence.kube.errors import (
    MESSAGE_CHARACTERS,
    Conflict,
    Forbidden,
    Invalid,
    KubernetesError,
    NamespaceTerminating,
    NotFound,
    Unreachable,
    plain,
    refusal,
)


def status(message: str = "no", **more: Any) -> bytes:
    return json.dumps({"kind": "Status", "message": message, "reason": "R"} | more).encode()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, Invalid),
        (401, Forbidden),
        (403, Forbidden),
        (404, NotFound),
        (408, Unreachable),
        (409, Conflict),
        (410, Invalid),
        (413, Invalid),
        (422, Invalid),
        (429, Unreachable),
        (500, Unreachable),
        (503, Unreachable),
        (302, Invalid),
    ],
)
def test_each_status_has_its_class(code: int, kind: type[KubernetesError]) -> None:
    error = refusal(code, status(), "get Pod a/b")
    assert type(error) is kind
    assert (error.status, error.reason) == (code, "R")
    assert str(error).startswith("cannot get Pod a/b: no")


def test_an_apply_of_what_has_no_schema_is_not_tried_again_whatever_its_status() -> None:
    body = status("failed to create typed patch object (a/b): .spec.x: field not declared in schema")
    assert type(refusal(500, body, "apply Pod a/b")) is Invalid


def test_rbac_is_told_apart_from_a_quota() -> None:
    rbac = status('pods is forbidden: User "u" cannot list resource "pods" in API group "" in the namespace "a"')
    assert "RBAC: bind a Role" in str(refusal(403, rbac, "list pods"))
    assert "RBAC" not in str(refusal(403, status('pods "b" is forbidden: exceeded quota: q'), "create Pod a/b"))


def test_a_namespace_that_goes_has_a_class_of_its_own() -> None:
    body = status(details={"causes": [7, {"reason": "NamespaceTerminating"}]})
    assert type(refusal(403, body, "apply Pod a/b")) is NamespaceTerminating


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b'{"kind": "Pod"}', b"[" * 100_000, b"\xff\xfe"])
def test_an_answer_that_is_no_status_is_told_by_its_number(body: bytes) -> None:
    assert "HTTP status 502 without a reason" in str(refusal(502, body, "get Pod a/b"))


def test_a_status_of_wrong_types_is_told_by_its_number() -> None:
    body = json.dumps({"kind": "Status", "message": ["x"], "reason": 7, "details": {"causes": "x"}}).encode()
    assert "HTTP status 422" in str(refusal(422, body, "get Pod a/b"))


@pytest.mark.parametrize(
    "told",
    [
        'a.b: Invalid value: "s3cr3t": must be no more',
        'a.b: Invalid value: "x \\" s3cr3t": must be no more',
        "a.b: Invalid value: s3cr3t: must be no more",
        'a.b: Unsupported value: "s3cr3t": supported values: "A"',
        'a.b: Duplicate value: "s3cr3t"',
        'a.b: Invalid value: {"x":"s3cr3t, y: z"}: must be no more',
        ".a.b: expected string, got &value.valueUnstructured{Value:s3cr3t}",
        '.a.b: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a":"s3cr3t"}}',
    ],
)
def test_a_value_that_the_api_server_repeats_is_not_shown(told: str) -> None:
    assert "s3cr3t" not in plain(told)
    assert "a.b: " in plain(told)


def test_words_are_one_line_and_not_endless() -> None:
    assert plain("a\n\n\tb\x1b[31m") == "a b [31m"
    assert len(plain("x" * 5000)) == MESSAGE_CHARACTERS
