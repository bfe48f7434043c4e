"""`python -m kvfence.catalogue`: signing and checking a file, as whoever writes advisories does."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kvfence.catalogue.__main__ import main
from tests.unit.catalogue.signed_documents import OTHER_PUBLIC, PUBLIC, addition
from tests.unit.domain.advisories.osv_documents import document


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "private").write_bytes(base64.b64encode(bytes(range(32))))
    (tmp_path / "public").write_bytes(PUBLIC + b"\n")
    (tmp_path / "other").write_bytes(OTHER_PUBLIC + b"\n")
    (tmp_path / "more.json").write_bytes(addition(date=datetime.now(UTC).isoformat()))
    return tmp_path


def sign(folder: Path) -> int:
    return main(["sign", str(folder / "more.json"), "--key", str(folder / "private")])


def check(folder: Path, key: str = "public") -> int:
    arguments = ["--signature", str(folder / "more.sig"), "--public-key", str(folder / key)]
    return main(["check", str(folder / "more.json"), *arguments])


def test_what_was_signed_checks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sign(folder) == 0
    (folder / "more.sig").write_text(capsys.readouterr().out)
    assert check(folder) == 0
    assert capsys.readouterr().out == "taken: KVF-2026-9001\n"
    assert check(folder, "other") == 1
    assert "the signature was not made by" in capsys.readouterr().err


def test_a_document_that_has_a_fault_is_not_signed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "more.json").write_bytes(addition(document(affected=[]), date=datetime.now(UTC).isoformat()))
    assert sign(folder) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "affected has 0 items" in said.err
    assert "Nothing was signed." in said.err


def test_a_key_that_is_none_or_not_there_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "private").write_text("secret-of-our-own")
    assert sign(folder) == 1
    assert "secret-of-our-own" not in capsys.readouterr().err
    (folder / "private").unlink()
    assert sign(folder) == 1
    assert "No such file" in capsys.readouterr().err
