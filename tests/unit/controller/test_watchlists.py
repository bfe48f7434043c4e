"""The file with added advisories: read when it is told to, believed when it is signed, and never passed over."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from kvfence.catalogue import packaged
from kvfence.catalogue.signing import PREFIX
from kvfence.controller.watchlists import Watchlists
from kvfence.domain.advisory_gate import counting

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = base64.b64encode(KEY.public_key().public_bytes_raw())
ENTRY: dict[str, Any] = {
    "id": "KVF-2026-9001",
    "modified": "2026-11-30T00:00:00Z",
    "summary": "Pages of others are read",
    "details": "For a test.",
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "sglang"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}]}],
        }
    ],
    "references": [{"type": "REPORT", "url": "https://example.com/9001"}],
    "database_specific": {"kvfence": {"severity": "critical", "whatToDo": "Use another release."}},
}


def write(file: Path, *entries: object, age: timedelta = timedelta(), key: Ed25519PrivateKey = KEY) -> None:
    date = (datetime.now(UTC) - age).strftime("%Y-%m-%dT%H:%M:%SZ")
    raw = json.dumps({"format": "kvfence-advisories/1", "date": date, "advisories": entries}).encode()
    file.write_bytes(raw)
    file.with_name(file.name + ".sig").write_bytes(base64.b64encode(key.sign(PREFIX + raw)))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "advisories.json"


def test_without_a_file_those_in_the_package_count() -> None:
    watchlist = Watchlists().current()
    assert watchlist.advisories == counting(packaged().advisories)
    assert watchlist.problems == ()
    assert watchlist.now is not None


def ids(watchlists: Watchlists) -> set[str]:
    return {one.id for one in watchlists.current().advisories} - {one.id for one in packaged().advisories}


def test_what_is_signed_is_added_and_what_a_later_one_leaves_out_counts_no_more(file: Path) -> None:
    write(file, ENTRY)
    watchlists = Watchlists(file, (PUBLIC,))
    assert ids(watchlists) == {"KVF-2026-9001"}
    assert watchlists.current().problems == ()
    before = watchlists.current().advisories
    assert not watchlists.refresh()
    assert watchlists.current().advisories is before, "engines that were judged by it are not judged again"
    write(file)
    assert watchlists.refresh()
    assert ids(watchlists) == set()


SPOILT = [
    (lambda file: file.unlink(), "advisories.json cannot be read"),
    (lambda file: file.with_name("advisories.json.sig").unlink(), "advisories.json.sig cannot be read"),
    (lambda file: file.write_bytes(file.read_bytes() + b" "), "the document was changed after it"),
    (lambda file: write(file, key=Ed25519PrivateKey.from_private_bytes(bytes(32))), "signature"),
    (lambda file: write(file, age=timedelta(hours=1)), "newer ones were there before"),
]


@pytest.mark.parametrize(("spoil", "words"), SPOILT)
def test_what_cannot_be_used_takes_nothing_away_of_what_was_signed_before(
    file: Path, spoil: Callable[[Path], object], words: str
) -> None:
    write(file, ENTRY)
    watchlists = Watchlists(file, (PUBLIC,))
    watchlists.current()
    spoil(file)
    assert watchlists.refresh()
    assert words in watchlists.current().problems[0]
    assert "go on counting" in watchlists.current().problems[0]
    assert ids(watchlists) == {"KVF-2026-9001"}


@pytest.mark.parametrize(("spoil", "words"), SPOILT[:4])
def test_what_cannot_be_used_from_the_beginning_is_a_problem_and_the_package_counts(
    file: Path, spoil: Callable[[Path], object], words: str
) -> None:
    write(file, ENTRY)
    spoil(file)
    watchlists = Watchlists(file, (PUBLIC,))
    assert words in watchlists.current().problems[0]
    assert ids(watchlists) == set()
    assert watchlists.current().advisories == counting(packaged().advisories)


def test_an_entry_that_cannot_be_read_and_one_that_the_operator_does_not_judge_are_problems(file: Path) -> None:
    of_router = copy.deepcopy(ENTRY) | {"id": "KVF-2026-9002"}
    of_router["affected"][0]["package"]["name"] = "smg"
    write(file, ENTRY, of_router, ENTRY | {"id": "KVF-2026-9003", "affected": 1})
    problems = " ".join(Watchlists(file, (PUBLIC,)).current().problems)
    assert "left out" in problems
    assert "KVF-2026-9002: the operator judges engines of SGLang" in problems


def test_old_ones_are_a_problem_and_count(file: Path) -> None:
    write(file, ENTRY, age=timedelta(days=31))
    watchlists = Watchlists(file, (PUBLIC,))
    assert "more than 30 days ago" in watchlists.current().problems[0]
    assert ids(watchlists) == {"KVF-2026-9001"}


def test_document_and_signature_are_read_from_one_version_of_the_config_map(tmp_path: Path) -> None:
    for name, entries in (("old", (ENTRY,)), ("new", ())):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "advisories.json", *entries)
    (tmp_path / "..data").symlink_to("old")
    for name in ("advisories.json", "advisories.json.sig"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    watchlists = Watchlists(tmp_path / "advisories.json", (PUBLIC,))
    read = Path.read_bytes

    def swap_in_between(path: Path) -> bytes:
        data = read(path)
        (tmp_path / "..data").unlink()
        (tmp_path / "..data").symlink_to("new")
        return data

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_bytes", swap_in_between)
        watchlists.refresh()
    assert watchlists.current().problems == ()
    assert ids(watchlists) == {"KVF-2026-9001"}
