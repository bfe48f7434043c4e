"""Ranks that defend otherwise make an engine of which nothing can be attested."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kvfence_engine.integrity.agreement import ALIKE, disagreement
from kvfence_engine.state import Rank

ATTESTED = {
    "version": "0.1.0",
    "pageTagging": "Enforce",
    "pageScrubbing": "Enforce",
    "coverage": "Enforce",
    "selfTest": "passed",
    "requestsVerified": 3,
    "found": {},
}
RANK = Rank(0, 2, "nonce", 1024, 16, 1018, 1018, integrity=ATTESTED)


def ranks(*changes: dict[str, Any]) -> list[Rank]:
    return [replace(RANK, index=index, nonce=str(index), **fields) for index, fields in enumerate(changes)]


def test_ranks_that_are_alike_agree() -> None:
    assert disagreement([]) is None
    assert disagreement(ranks({})) is None
    other = {**ATTESTED, "requestsVerified": 9, "found": {"Coverage": 1}}
    assert disagreement(ranks({}, {"pool_tokens": 512, "pid": 9, "integrity": other})) is None


@pytest.mark.parametrize("name", ALIKE)
def test_ranks_that_defend_otherwise_are_named(name: str) -> None:
    assert disagreement(ranks({}, {}, {"integrity": {**ATTESTED, name: "else"}})) == (
        f"ranks 0 and 2 differ in {name} ({ATTESTED[name]} and else): start all from one image and environment"
    )
    without = {key: value for key, value in ATTESTED.items() if key != name}
    assert disagreement(ranks({"integrity": without}, {})) is not None


def test_pages_of_another_size_are_named() -> None:
    assert disagreement(ranks({}, {"page_size": 64})) == (
        "ranks 0 and 1 differ in page size (16 and 64): start all from one image and environment"
    )
