"""What the incident ends with: 0 if it was shown, 1 if it was not, 2 if it could not be played."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from e2e.engines.environment import EngineSetupError
from e2e.engines.processes import ServerError
from e2e.errors import ApiserverHungError, StageError
from e2e.incident import cli
from e2e.incident.cli import Ground
from e2e.incident.scenario import Seen
from tests.unit.incident.test_verdict import GARBAGE, HUNG, LEAKED

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Plays this in the place of the incident; returns exit code, output and complaints."""

    def main(played: tuple[Seen, ...] | Exception, *arguments: str) -> tuple[int, str, str]:
        def play(on: Ground) -> tuple[Seen, ...]:
            assert on is (Ground.PROCESSES if arguments else Ground.PODS)
            if isinstance(played, Exception):
                raise played
            return played

        monkeypatch.setattr(cli, "play", play)
        monkeypatch.setattr(sys, "argv", ["e2e.incident", *arguments])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        code = caught.value.code or 0
        assert isinstance(code, int)
        heard = capsys.readouterr()
        return code, heard.out, heard.err

    return main


@pytest.mark.parametrize("arguments", [(), ("--on", "processes")], ids=str)
def test_an_incident_that_was_shown_is_exit_code_0(arguments: tuple[str, ...], run: Run) -> None:
    code, shown, said = run((LEAKED, GARBAGE, HUNG), *arguments)
    assert code == 0
    assert "A2's NPQRSTUVWXYZ" in shown
    assert "in all: " in said
    assert "not seen" not in said


def test_an_incident_that_was_not_shown_is_exit_code_1_after_the_tables(run: Run) -> None:
    code, shown, said = run((GARBAGE, HUNG))
    assert code == 1
    assert "made of KV that was never written for them" in shown
    assert "The leak was not seen this time." in said


@pytest.mark.parametrize(
    "reason",
    [
        StageError("stage stage is up without its audit log"),
        ApiserverHungError("not ready in 45 s"),
        EngineSetupError("no lock for it"),
        ServerError("prefill-old ended with status 1"),
        OSError(28, "No space left on device"),
    ],
    ids=lambda reason: type(reason).__name__,
)
def test_an_incident_that_could_not_be_played_is_exit_code_2_and_one_line(reason: Exception, run: Run) -> None:
    assert run(reason) == (2, "", f"error: {reason}\n")


def test_a_mistake_of_the_demonstration_itself_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(_: Ground) -> None:
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr(cli, "play", play)
    with pytest.raises(ZeroDivisionError):
        cli.show()
