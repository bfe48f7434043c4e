"""Every way in which the command line ends has its words and its exit code."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import kvfence.cli.crd
from kvfence.cli.commands import COMMANDS
from kvfence.cli.program import name_of, run

FIELD_LOG = next((Path(__file__).resolve().parents[2] / "field" / "logs").glob("001-*"))
OPERATOR = Path(__file__).resolve().parents[3] / "operator"


def kvfence_(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, check=False, env=environment(), **more)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "kvfence.cli", *arguments]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(OPERATOR), **more}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "No command was given"),
        (["frobnicate"], "No such command: frobnicate."),
        (["doctr"], "Did you mean doctor?"),
        (["--frobnicate"], "No such option: --frobnicate"),
        (["doctor"], "Missing argument"),
        (["doctor", "--frobnicate", "x"], "No such option"),
        (["doctor", "x", "-o", "xml"], "xml"),
        (["version", "extra"], "extra"),
        (["crd", "extra"], "extra"),
        (["explain", "a", "b"], "b"),
    ],
)
def test_a_wrong_usage_is_three_with_the_usage_on_standard_error(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert run(["kvfence", *arguments]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Usage: kvfence")
    assert said in err


def test_arguments_do_not_act_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["\x1b[2J"], ["doctor", "\x1b[2J.log"], ["explain", "\x1b[2J"], ["--\x1b[2J"]):
        assert run(["kvfence", *arguments]) == 3
        assert "\x1b" not in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("/usr/bin/kvfence", "kvfence"),
        ("kubectl-kvfence", "kubectl kvfence"),
        ("/opt/bin/kubectl-kvfence", "kubectl kvfence"),
        ("/x/kvfence/cli/__main__.py", "python -m kvfence.cli"),
    ],
)
def test_usage_lines_say_how_it_was_called(capsys: pytest.CaptureFixture[str], program: str, name: str) -> None:
    assert name_of(program) == name
    assert run([program, "doctor", "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: {name} doctor ")


@pytest.mark.parametrize("name", [*COMMANDS])
def test_every_command_has_help_with_examples_and_exit_codes(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert run(["kvfence", name, "--help"]) == 0
    text = capsys.readouterr().out
    assert "Examples:" in text
    assert f"kvfence {name}" in text
    assert "Exit codes:" in text


def test_a_fault_of_our_own_is_seventy_and_quotes_nothing_that_was_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_text: str) -> None:
        raise ValueError("a user's prompt \x1b[2J")

    monkeypatch.setattr(kvfence.cli.crd, "write", broken)
    assert run(["kvfence", "crd"]) == 70
    err = capsys.readouterr().err
    assert "it is kvfence's fault: ValueError at " in err
    assert "report" in err
    assert "prompt" not in err
    monkeypatch.setenv("KVFENCE_TRACEBACK", "1")
    assert run(["kvfence", "crd"]) == 70
    err = capsys.readouterr().err
    assert "a user's prompt" in err
    assert "\x1b" not in err


def test_ctrl_c_is_130_without_a_word(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(_text: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(kvfence.cli.crd, "write", interrupted)
    assert run(["kvfence", "crd"]) == 130
    assert capsys.readouterr() == ("", "")


def test_ctrl_c_ends_a_doctor_who_waits_for_a_pipe() -> None:
    process = subprocess.Popen(
        command("doctor", "-"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        # whoever runs the tests in the background has had the signal ignored, and that is inherited
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - it is all that it does
    )
    assert process.stdin is not None
    process.stdin.write(b"a line\n" * 100_000)  # more than a pipe holds: when it is written, the doctor is reading
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    try:
        status = process.wait(timeout=5)
    finally:
        process.kill()
    assert process.stdout is not None
    assert process.stderr is not None
    said = (process.stdout.read(), process.stderr.read())
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()
    print(f"ended {time.monotonic() - began:.2f} s after Ctrl-C")
    assert (status, said) == (130, (b"", b""))


def test_a_reader_that_goes_away_is_141_without_a_word() -> None:
    for arguments in (["crd"], ["explain"], ["--help"]):
        read, written = os.pipe()
        os.close(read)
        process = subprocess.run(
            command(*arguments), stdout=written, stderr=subprocess.PIPE, check=False, env=environment()
        )
        os.close(written)
        assert (process.returncode, process.stderr) == (141, b""), arguments


@pytest.mark.parametrize("arguments", [["crd"], ["version"], ["doctor", str(FIELD_LOG)], ["--help"]])
def test_an_output_that_cannot_be_written_is_74_and_said(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command(*arguments), stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=environment()
        )
    assert (done.returncode, done.stderr) == (
        74,
        "kvfence: standard output cannot be written: No space left on device\n",
    )


def test_a_closed_output_is_no_fault() -> None:
    line = f"exec {' '.join(command('version'))} >&-"
    done = subprocess.run(["sh", "-c", line], stderr=subprocess.PIPE, text=True, check=False, env=environment())
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_without_our_letters_gets_escapes_and_no_fault() -> None:
    done = subprocess.run(
        command("explain", "\N{SNOWMAN}"),
        capture_output=True,
        check=False,
        env=environment(PYTHONIOENCODING="ascii", PYTHONUTF8="0"),
    )
    assert done.returncode == 3
    assert b"\\u2603" in done.stderr


def test_completion_knows_commands_and_flags() -> None:
    program = "import sys; sys.argv = ['kvfence']; from kvfence.cli import main; sys.exit(main())"

    def completed(words: str, at: int) -> str:
        shell = {"_KVFENCE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(at)}
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment(**shell)
        )
        return done.stdout

    assert completed("kvfence do", 1).split() == ["doctor"]
    assert completed("kvfence explain ContextA", 2).split() == ["ContextAbovePool"]
    assert completed("kvfence doctor --na", 2).split() == ["--namespace"]


def test_the_module_can_be_run() -> None:
    done = kvfence_("version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("kvfence ")


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_reader_that_goes_away_is_told_from_a_finding(output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            if text:
                raise BrokenPipeError(errno.EPIPE, "Broken pipe")
            return 0

    monkeypatch.setattr("sys.stdout", Gone())
    log = next((Path(__file__).resolve().parents[2] / "field" / "logs").glob("001*"))
    assert run(["kvfence", "doctor", "--output", output, str(log)]) == 141
