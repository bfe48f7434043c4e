from __future__ import annotations

import io

import pytest
from rich.console import Console

from kvfence.cli.canary.telling import Telling
from kvfence.domain.verdicts import Check
from kvfence.verify.canary.result import failed, passed
from kvfence.verify.canary.run import CheckReport
from kvfence.verify.canary.session import Budget

PASSED = CheckReport(Check.PROMPT_TOKENS, passed(), 1.25, 21, 4000)
FAILED = CheckReport(Check.OVERLONG_PROMPT, failed("No."), 2.0, 1_017, 4000)


@pytest.mark.parametrize("moves", [False, True])
def test_each_check_is_told_when_it_has_ended(moves: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=moves, highlight=False, markup=False)
    with Telling(console, 2, Budget(500, 1000, 0), moves=moves) as telling:
        for report in (PASSED, FAILED):
            telling.began(report.check)
            telling.ended(report)
    text = out.getvalue()
    assert "[1/2] PromptTokens: pass, 21 requests in 1.2 s" in text
    assert "[2/2] OverlongPrompt: FAIL, 1,017 requests in 2.0 s" in text
    assert ("of at most 500 requests" in text) is moves
    assert ("\x1b" in text) is moves


def test_without_a_terminal_a_check_that_takes_long_is_told_as_it_begins() -> None:
    out = io.StringIO()
    with Telling(Console(file=out, width=100, markup=False), 2, Budget(500, 1000, 0), moves=False) as telling:
        telling.began(Check.PROMPT_TOKENS)
        assert out.getvalue() == "[1/2] PromptTokens ...\n"
