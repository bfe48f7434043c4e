from __future__ import annotations

from dataclasses import replace

import pytest

from kvfence.cli.canary.report import Report
from kvfence.cli.canary.table import EVIDENCE, show
from kvfence.domain.verdicts import Check
from tests.unit.cli.canary.reports import ALL, FAILED, LEAKED, PASSED, UNKNOWN, console, report


def shown(given: Report, width: int = 100) -> str:
    drawing, out = console(width)
    show(given, drawing)
    return out.getvalue()


def test_a_failure_says_whose_marker_came_out_of_whose_answer() -> None:
    text = shown(ALL)
    assert LEAKED in text
    assert "OverlongPrompt: FAIL\n  A prompt that did not fit was answered." in text
    assert text.rstrip().endswith("before anybody uses it again.")


def test_failures_come_last_where_a_reader_looks_first() -> None:
    text = shown(ALL)
    assert text.index("SaltIsolation: could not be judged") < text.index("OverlongPrompt: FAIL")


def test_a_pass_says_how_small_a_leak_it_would_have_seen() -> None:
    text = shown(report(PASSED))
    assert "MarkerIsolation: A leak of 1 in 13 requests would have been seen with p = 0.96" in text
    assert "Nothing failed" not in text


def test_what_could_not_be_judged_is_no_pass() -> None:
    text = shown(report(PASSED, UNKNOWN))
    assert "The server does not say how much was cached." in text
    assert "this is no pass" in text


def test_what_hides_all_answers_is_said_once() -> None:
    text = shown(report(UNKNOWN, replace(UNKNOWN, check=Check.PROMPT_TOKENS), FAILED))
    assert "SaltIsolation, PromptTokens: could not be judged\n  The server" in text
    assert text.count(UNKNOWN.reason) == 1


def test_servers_notes_and_what_was_left_out_are_shown() -> None:
    text = shown(ALL)
    assert "prefill http://10.0.0.1:30000: version 0.5.19, KV pool 1,024, context 4,096, prompts below 1,018" in text
    assert "Note: A note." in text
    assert "Left out: RouterPairing (not a router)" in text


def test_a_run_that_was_stopped_says_so() -> None:
    assert "Stopped before the end" in shown(report(PASSED, interrupted=True))


def test_hundreds_of_lines_of_evidence_are_cut_and_counted() -> None:
    text = shown(report(replace(FAILED, evidence=(LEAKED,) * (EVIDENCE + 7))))
    assert text.count(LEAKED) == EVIDENCE
    assert "and 7 more; --output json has all" in text


@pytest.mark.parametrize(
    "hostile", ["\x1b]0;title\x07", "[red]x[/red]", "\u202egnp.exe", "a\nOverlongPrompt: pass", ":boom:"]
)
def test_what_a_server_said_cannot_act_on_the_terminal(hostile: str) -> None:
    text = shown(report(replace(FAILED, reason=hostile, evidence=(hostile,))))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\nOverlongPrompt: pass" not in text
    if hostile.isprintable() and "\u202e" not in hostile:
        assert hostile in text


def test_nothing_is_lost_on_a_narrow_terminal() -> None:
    text = " ".join(shown(ALL, 40).split())
    assert "has the marker ABCDEFGHJKLM of user 2" in text
