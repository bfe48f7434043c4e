"""What the demo ends with: 0 if all was seen, 1 if not, 2 if it could not be played, 130 if it was stopped."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.cluster import stage
from e2e.cluster.kubectl import Kubectl
from e2e.cluster.layout import STAGE
from e2e.demo import cli, installation, scene
from e2e.demo.ground import Ground
from e2e.demo.scene import EXAMPLE, Scene
from e2e.demo.telling import Teller
from e2e.errors import StageError

Run = Callable[..., tuple[int, str, str]]


def ground(home: Path) -> Ground:
    return Ground(Kubectl(home / "kubectl", home / "config"), None, None, "a cluster", "", "kubectl")  # type: ignore[arg-type]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Runs the command with this in the place of the play; returns exit code, output and complaints."""

    def main(outcome: bool | BaseException, *arguments: str) -> tuple[int, str, str]:
        def play(_: Ground, scene: Scene, system_namespace: str, teller: Teller) -> bool:
            assert system_namespace
            teller.say(f"pool {scene.pool} in {scene.namespace}, removed with {scene.down}")
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        monkeypatch.setattr(cli, "play", play)
        monkeypatch.setattr(cli, "on_stage", ground)
        monkeypatch.setattr(cli, "in_context", lambda name, home: ground(home))
        monkeypatch.setattr(sys, "argv", ["e2e.demo", *arguments])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        code = caught.value.code or 0
        assert isinstance(code, int)
        heard = capsys.readouterr()
        return code, heard.out, heard.err

    return main


def test_a_demo_that_was_seen_is_exit_code_0(run: Run) -> None:
    code, shown, _ = run(True)
    assert code == 0
    assert "In all: " in shown


def test_a_demo_of_which_something_was_not_seen_is_exit_code_1(run: Run) -> None:
    assert run(False)[0] == 1


@pytest.mark.parametrize("reason", [StageError("no room"), OSError(28, "No space left on device")], ids=repr)
def test_a_demo_that_could_not_be_played_is_exit_code_2_and_one_line(run: Run, reason: Exception) -> None:
    code, _, said = run(reason)
    assert (code, said) == (2, f"error: {reason}\n")


@pytest.mark.parametrize(
    ("arguments", "removes"), [((), "`make demo-down`"), (("--context", "mine"), "`make demo-down CONTEXT=mine`")]
)
def test_a_demo_that_was_stopped_says_how_to_remove_what_is_there(
    run: Run, arguments: tuple[str, ...], removes: str
) -> None:
    code, _, said = run(KeyboardInterrupt(), *arguments)
    assert code == 130
    assert removes in said


def test_a_file_without_a_pool_is_said_to_be_none(run: Run, tmp_path: Path) -> None:
    for text in ("", "[]", "kind: InferencePool", "a: [b"):
        (tmp_path / "pool.yaml").write_text(text)
        code, _, said = run(True, "--pool", str(tmp_path / "pool.yaml"))
        assert code == 2
        assert "is no file with one InferencePool" in said
    assert EXAMPLE.is_file()


def test_down_takes_the_stage_down_and_leaves_it_alone_with_a_context(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone: list[object] = []
    monkeypatch.setattr(stage, "down", gone.append)
    monkeypatch.setattr(installation, "remove", lambda *_: ["Nothing of the demo is there."])
    code, shown, _ = run(AssertionError("not to be played"), "--down", "--context", "mine")
    assert (code, shown, gone) == (0, "Nothing of the demo is there.\n", [])
    code, shown, _ = run(AssertionError("not to be played"), "--down")
    assert (code, gone) == (0, [STAGE])
    assert "The stage is down." in shown


def test_applying_a_pool_again_is_no_change_although_kubectl_calls_it_one(tmp_path: Path) -> None:
    generations = tmp_path / "generations"
    program = tmp_path / "kubectl"
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *" apply "*) echo configured;; *)'
        f" head -n 1 {generations}; sed -i 1d {generations};; esac\n"
    )
    program.chmod(0o755)
    given = scene.read(EXAMPLE, "demo", "make demo-down")
    for seen, applied in (("\na/1\n", "created"), ("a/1\na/1\n", "unchanged"), ("a/1\na/2\n", "changed")):
        generations.write_text(seen)
        assert scene.apply(Kubectl(program, tmp_path / "config"), given) == applied
