from __future__ import annotations

import pytest

from kvfence.cli.canary.report import VERDICTS, ExitCode, Judged, Verdict
from kvfence.domain.verdicts import Outcome
from tests.unit.cli.canary.reports import BROKEN, FAILED, PASSED, UNKNOWN, report


@pytest.mark.parametrize(
    ("checks", "code"),
    [
        pytest.param((PASSED, PASSED), 0, id="all passed"),
        pytest.param((PASSED, FAILED), 1, id="one failed"),
        pytest.param((UNKNOWN, BROKEN, FAILED), 1, id="one failed, and others say nothing"),
        pytest.param((PASSED, UNKNOWN), 2, id="one could not be judged"),
        pytest.param((PASSED, BROKEN), 2, id="one is broken"),
        pytest.param((), 2, id="nothing was asked, which is no pass"),
    ],
)
def test_the_exit_code_says_the_worst(checks: tuple[Judged, ...], code: int) -> None:
    assert report(*checks).exit_code == code


def test_a_run_that_was_stopped_says_so_whatever_it_saw() -> None:
    assert report(PASSED, FAILED, interrupted=True).exit_code is ExitCode.INTERRUPTED
    assert int(ExitCode.INTERRUPTED) == 130


def test_every_outcome_has_a_verdict_of_its_own() -> None:
    assert set(VERDICTS) == set(Outcome)
    assert set(VERDICTS.values()) == set(Verdict)
