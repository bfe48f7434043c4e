"""The report as people read it, pinned on text."""

from __future__ import annotations

import io
import re

import pytest

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.cli.output import console
from kvfence.cli.table import show, verdict
from kvfence.domain.diagnosis.doubts import Doubt, Reason
from kvfence.domain.diagnosis.report import Finding, Report, Severity
from kvfence.domain.diagnosis.seen import EngineSeen, Product

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(io.StringIO):
    """Says that it is one."""

    def isatty(self) -> bool:
        return True


PREFILL = EngineSeen(
    "http://127.0.0.1:30000 (prefill)",
    product=Product.SGLANG,
    version="0.5.23",
    started=True,
    role=RoleType.PREFILL,
    kv_pool_tokens=681_280,
    context_length=1_048_576,
    told_input_limit=681_274,
    settings={"disaggregation_enable_kv_checksum": False},
)
UNTOLD = EngineSeen("server.log", rank=3)
NOT_TOLD = Doubt(Reason.CONTEXT_FITS_UNTOLD, "server.log")
COMMAND = "python3 -m sglang.launch_server --context-length 681280 --mem-fraction-static 0.9 --log-level info"
FINDINGS = (
    Finding("ContextAbovePool", Severity.CRITICAL, "It offers 1,048,576 tokens " + "and holds less " * 8, COMMAND),
    Finding("CVE-2026-3059", Severity.MEDIUM, "It applies.", "Upgrade:\npip install 'sglang>=0.5.10'"),
)
REPORT = Report((PREFILL, UNTOLD), FINDINGS, ("server.log does not tell its pool; " + "start it again " * 6,), ())
CLEAN = Report((EngineSeen("a.log", version="0.5.23", kv_pool_tokens=2, context_length=1, started=True),), (), (), ())


EXPECTED = """\
engine
  version     pool    context  fits  could offer  input limit  checksum
http://127.0.0.1:30000 (prefill)
  0.5.23   681,280  1,048,576  NO        681,280      681,274  off
server.log rank 3
  ?              ?          ?  ?               ?            ?  ?
In tokens. ? is what was not told.

CRITICAL  ContextAbovePool
  It offers 1,048,576 tokens and holds less and holds less and holds less and
  holds less and holds less and holds less and holds less and holds less
    python3 -m sglang.launch_server --context-length 681280 --mem-fraction-static 0.9 --log-level info

MEDIUM  CVE-2026-3059
  It applies.
    Upgrade:
    pip install 'sglang>=0.5.10'

Missing to be sure
  - server.log does not tell its pool; start it again start it again start it
  again start it again start it again start it again

2 findings in 2 engines; begin with ContextAbovePool (critical).
"""


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)


def shown(report: Report, stream: io.StringIO | None = None) -> str:
    stream = stream or io.StringIO()
    show(report, console(stream))
    return stream.getvalue()


def test_the_whole_report_at_eighty_columns_without_a_terminal() -> None:
    assert shown(REPORT).splitlines() == EXPECTED.splitlines()


def test_a_command_is_one_line_that_can_be_copied_and_all_else_fits() -> None:
    lines = shown(REPORT).splitlines()
    assert "    " + COMMAND in lines
    assert [line for line in lines if len(line) > 80] == ["    " + COMMAND]


@pytest.mark.parametrize("columns", ["40", "60", "80", "120"])
def test_no_figure_is_cut_whatever_the_width(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    text = shown(REPORT)
    for figure in ("681,280", "1,048,576", "681,274", "0.5.23"):
        assert figure in text
    assert "ContextAbovePool" in text


def test_the_verdict_is_the_last_line() -> None:
    assert shown(REPORT).splitlines()[-1] == verdict(REPORT)
    assert verdict(REPORT) == "2 findings in 2 engines; begin with ContextAbovePool (critical)."
    assert verdict(CLEAN) == "Nothing was found in 1 engine: the context on offer fits into every pool."
    assert verdict(Report((), (), (), (NOT_TOLD,))).startswith("Cannot tell")
    assert verdict(Report((UNTOLD,), (), (), (NOT_TOLD,))) == (
        "Cannot tell: what was read of 1 engine does not say enough to be sure."
    )


def test_an_engine_that_did_not_start_says_so() -> None:
    failed = EngineSeen("a.log", kv_pool_tokens=1, context_length=2, started=False)
    assert "no start" in shown(Report((failed,), (), (), (NOT_TOLD,)))
    assert " NO" not in shown(Report((failed,), (), (), (NOT_TOLD,)))


def test_colours_are_for_terminals() -> None:
    assert "\x1b[" not in shown(REPORT)
    coloured = shown(REPORT, Terminal())
    assert "\x1b[" in coloured
    assert ESCAPES.sub("", coloured) == shown(REPORT)


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "0"}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, False),
        ({"NO_COLOR": ""}, False),
    ],
)
def test_the_environment_decides_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], coloured: bool
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in shown(REPORT)) is coloured


def test_no_colour_on_a_terminal_means_no_escape_sequence_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in shown(REPORT, Terminal())


HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b31m\r\u202e[red]x[/red]\ud800 :smile: <b>"


def test_what_comes_from_outside_does_not_reach_the_terminal() -> None:
    engine = EngineSeen(HOSTILE, version=HOSTILE, kv_pool_tokens=1, context_length=2)
    finding = Finding(HOSTILE, Severity.HIGH, HOSTILE, f"{HOSTILE}\n{HOSTILE}")
    text = shown(Report((engine,), (finding,), (HOSTILE,), ()))
    assert all(character == "\n" or character.isprintable() for character in text)
    assert "[red]x[/red]" in text
    assert ":smile:" in text


def test_of_very_many_sentences_the_first_are_shown_and_the_rest_counted() -> None:
    text = shown(Report((UNTOLD,), (), tuple(f"sentence {number}." for number in range(40)), (NOT_TOLD,)))
    assert "sentence 11." in text
    assert "sentence 12." not in text
    assert "and 28 more" in text
