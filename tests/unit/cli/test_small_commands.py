"""`crd`, `version` and `explain`."""

from __future__ import annotations

import ast
import json
import platform
from pathlib import Path

import pytest

import kvfence
import kvfence.domain.diagnosis
from kvfence.api.v1alpha1.conditions import ConditionType
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.catalogue import packaged
from kvfence.cli.findings import FINDINGS
from kvfence.cli.program import run
from kvfence.cli.words import all_words
from kvfence.domain.verdicts import Check

CRD = Path(__file__).resolve().parents[3] / "crds" / "kvfence.io_inferencepools.yaml"


def said(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert run(["kvfence", *arguments]) == status
    out, err = capsys.readouterr()
    assert (err == "") is (status == 0)
    return out or err


def test_crd_prints_the_committed_file_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "crd") == CRD.read_text()


def test_version_says_what_the_package_has(capsys: pytest.CaptureFixture[str]) -> None:
    catalogue = packaged()
    assert catalogue.date is not None
    printed = json.loads(said(capsys, "version", "--output", "json"))
    assert printed == {
        "version": kvfence.__version__,
        "catalogue": {"date": catalogue.date.date().isoformat(), "advisories": len(catalogue.advisories)},
        "python": platform.python_version(),
    }
    text = said(capsys, "version")
    assert f"kvfence     {kvfence.__version__}\n" in text
    assert f"advisories  {len(catalogue.advisories)}, as of {catalogue.date.date().isoformat()}\n" in text


def test_every_word_is_explained() -> None:
    words = all_words()
    assert {*ConditionType, *Reason, *Check} <= {one.name for one in words}
    assert {one.id for one in packaged().advisories} <= {one.name for one in words}
    assert [one.name for one in words if len(one.says) < 10] == []


def test_every_finding_that_a_rule_can_have_is_explained_and_no_other() -> None:
    """A finding's id is the first argument of a Hit or of a Switch, spelled out."""
    found = set()
    for path in Path(kvfence.domain.diagnosis.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"Hit", "Switch"}:
                found |= {node.args[0].value} if isinstance(node.args[0], ast.Constant) else set()
    assert len(found) > 20
    assert set(FINDINGS) == found


def test_explain_lists_every_word_without_one(capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, "explain").splitlines()
    for word in all_words():
        assert any(line.startswith(f"  {word.name} ") for line in lines), word.name


@pytest.mark.parametrize("word", ["ChecksumOff", "checksumoff", "CHECKSUMOFF"])
def test_a_word_is_explained_whatever_its_case(capsys: pytest.CaptureFixture[str], word: str) -> None:
    assert said(capsys, "explain", word) == (
        "ChecksumOff (reasons)\n  A running engine reports its KV checksum as off.\n\n"
        "ChecksumOff (findings of the doctor)\n"
        "  The KV checksum is off: KV that arrives broken or from somebody else is not\n  noticed.\n"
    )


def test_an_advisory_is_explained_with_what_to_do_by_any_of_its_names(capsys: pytest.CaptureFixture[str]) -> None:
    one = next(advisory for advisory in packaged().advisories if advisory.aliases)
    text = said(capsys, "explain", one.id)
    assert said(capsys, "explain", one.aliases[0].lower()) == text
    assert one.what_to_do.split()[0] in text
    assert f"Severity: {one.severity.value}" in text
    assert one.references[0] in text


@pytest.mark.parametrize(
    ("word", "near"),
    [("Checksumoff1", "ChecksumOff"), ("markerisolatoin", "MarkerIsolation"), ("pagesizes", "PageSizesDiffer")],
)
def test_an_unknown_word_is_three_with_what_looks_like_it(
    capsys: pytest.CaptureFixture[str], word: str, near: str
) -> None:
    assert near in said(capsys, "explain", word, status=3)


def test_a_word_that_looks_like_none_is_told_where_all_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert "all are listed" in said(capsys, "explain", "zzzzzzzz", status=3)
