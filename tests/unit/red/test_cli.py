"""What `make red` ends with: 0 if a test went red for each defence, 1 otherwise, and it names the others."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.errors import StageError
from e2e.red import cli, trial
from e2e.red.defences import Defence, DefenceError, Level, NamedTest
from e2e.red.trial import Outcome, Result

Run = Callable[..., tuple[int, str, str]]

TEST = NamedTest("tests/unit/test_a.py", "test_that_goes_red")
DEFENCES = (
    Defence("lock", "The door [is] locked.", (TEST,), Level.FAST, ""),
    Defence("wall", "There is a wall.", (TEST,), Level.STAGE, ""),
)


def result(defence: Defence, outcome: Outcome) -> Result:
    return Result(defence, outcome, (TEST,) if outcome is Outcome.RED else (), 1.0, "nobody would notice")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Has this come of every defence; returns exit code, output and complaints."""

    def main(came: Outcome | Exception, *arguments: str) -> tuple[int, str, str]:
        def make_sure(_root: Path, _defences: object) -> None:
            if isinstance(came, Exception):
                raise came

        def try_all(_root: Path, defences: tuple[Defence, ...]) -> tuple[Result, ...]:
            assert isinstance(came, Outcome)
            return tuple(result(defence, came) for defence in defences)

        monkeypatch.setattr(cli, "read_all", lambda _root: DEFENCES)
        monkeypatch.setattr(trial, "make_sure_that_all_is_green", make_sure)
        monkeypatch.setattr(trial, "try_all", try_all)
        monkeypatch.setattr(sys, "argv", ["e2e.red", *arguments])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        heard = capsys.readouterr()
        code = caught.value.code or 0
        assert isinstance(code, int)
        return code, heard.out, heard.err

    return main


def test_each_defence_that_was_noticed_is_exit_code_0(run: Run) -> None:
    code, shown, said = run(Outcome.RED)
    assert code == 0
    assert "The door [is] locked." in shown
    assert "test_that_goes_red" in shown
    assert "1 of 1 were noticed." in shown
    assert "in all: " in said


@pytest.mark.parametrize("outcome", [Outcome.GREEN, Outcome.STALE, Outcome.BROKEN])
def test_one_that_was_not_noticed_is_named_and_exit_code_1(run: Run, outcome: Outcome) -> None:
    code, shown, _ = run(outcome)
    assert code == 1
    assert f"NONE: {outcome}" in shown
    assert f"lock {outcome}: nobody would notice" in shown
    assert "0 of 1 were noticed." in shown


@pytest.mark.parametrize("error", [StageError("git is not there"), DefenceError("write it"), OSError("disk full")])
def test_what_cannot_be_tried_is_exit_code_1(run: Run, error: Exception) -> None:
    code, _, said = run(error)
    assert code == 1
    assert f"error: {error}" in said


def test_the_level_and_names_choose(run: Run) -> None:
    assert "wall" not in run(Outcome.RED)[1]
    assert "lock" not in run(Outcome.RED, "--stage")[1]
    assert "2 of 2" in run(Outcome.RED, "lock", "wall")[1]
    code, _, said = run(Outcome.RED, "lok")
    assert code == 1
    assert "there is no lok; there are: lock, wall" in said
