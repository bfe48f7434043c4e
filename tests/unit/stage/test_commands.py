"""A command that does not do what it should is one error, which says what failed and in which words."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from e2e import commands
from e2e.errors import StageError


def failure(*command: str, shown: str = "", seconds: float | None = None, folder: Path | None = None) -> str:
    with pytest.raises(StageError) as caught:
        commands.run(*command, shown=shown, seconds=seconds, folder=folder)
    return str(caught.value)


def test_what_a_command_printed_is_returned_and_what_it_complained_of_is_not() -> None:
    assert commands.run("sh", "-c", "echo out; echo err >&2") == "out\n"


def test_a_command_has_its_input_its_folder_and_its_settings_beside_those_of_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "kept")
    monkeypatch.setenv("BOTH", "of this process")
    script = 'cat; pwd; echo "$OURS $THEIRS $BOTH"'
    settings = {"THEIRS": "added", "BOTH": "of the command"}
    said = commands.run("sh", "-c", script, given=b"given ", folder=tmp_path, settings=settings)
    assert said == f"given {tmp_path}\nkept added of the command\n"
    assert os.environ["BOTH"] == "of this process"


def test_a_command_waits_for_nobody_to_type() -> None:
    assert commands.run("cat", seconds=10) == ""


def test_what_is_no_text_is_read_all_the_same() -> None:
    assert commands.run("printf", "caf\\303\\251 \\377") == "café \ufffd"
    assert failure("sh", "-c", "printf '\\377' >&2; exit 1").endswith("failed: \ufffd")


@pytest.mark.parametrize("program", ["kvfence-no-such-program", "/no/such/program"])
def test_a_program_that_is_not_there_is_named(program: str) -> None:
    assert failure(program, "--flag") == f"`{program} --flag` could not be run: {program} is not there"


def test_a_folder_that_is_not_there_is_named_and_not_the_program(tmp_path: Path) -> None:
    folder = tmp_path / "none"
    assert failure("true", folder=folder) == f"`true` could not be run: {folder} is not there"


def test_a_command_that_takes_too_long_is_ended_and_named_with_its_time() -> None:
    assert failure("sleep", "60", seconds=0.1) == "`sleep 60` did not end in 0 s"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo out; echo '  why  ' >&2; exit 2", "why"),
        ("echo only out; exit 2", "only out"),
        ("echo only out; echo ' ' >&2; exit 2", "only out"),
        ("exit 2", "exit code 2"),
        ("echo ' '; exit 2", "exit code 2"),
        ("kill -9 $$", "exit code -9"),
    ],
)
def test_a_command_that_fails_has_its_words_or_else_its_exit_code(script: str, said: str) -> None:
    assert failure("sh", "-c", script) == f"`sh -c {script}` failed: {said}"


def test_of_a_very_long_complaint_the_end_is_shown() -> None:
    said = failure("sh", "-c", 'head -c 100000 /dev/zero | tr "\\0" x >&2; echo the point >&2; exit 1', shown="it")
    assert said.endswith("the point")
    assert len(said) == len("it failed: ") + commands.SAID_CHARACTERS


@pytest.mark.parametrize(
    ("command", "seconds", "said"),
    [
        (("false", "secret"), None, "failed: exit code 1"),
        (("kvfence-no-such-program", "secret"), None, "could not be run: kvfence-no-such-program is not there"),
        (("sh", "-c", "exec sleep 60", "secret"), 0.1, "did not end in 0 s"),
    ],
)
def test_an_error_shows_what_it_is_told_to_show_in_the_place_of_the_command(
    command: tuple[str, ...], seconds: float | None, said: str
) -> None:
    assert failure(*command, shown="fetching it", seconds=seconds) == f"fetching it {said}"


def test_proxies_are_taken_out_of_a_copy_of_the_environment(proxies: None) -> None:
    without = commands.without_proxies()
    assert {name for name in os.environ if name not in without} >= {
        "HTTPS_PROXY",
        "http_proxy",
        "NO_PROXY",
        "All_Proxy",
    }
    assert without["UNRELATED"] == "stays"
    assert os.environ["HTTPS_PROXY"] != ""


def test_a_command_that_asks_the_world_outside_keeps_its_proxies(
    proxies: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[dict[str, str]] = []

    def run(command: tuple[str, ...], *, env: dict[str, str], **_: object) -> subprocess.CompletedProcess[bytes]:
        given.append(env)
        return subprocess.CompletedProcess(command, 0, b"", b"")

    monkeypatch.setattr(subprocess, "run", run)
    commands.run("apt-get", "update")
    assert given[0]["HTTPS_PROXY"] == os.environ["HTTPS_PROXY"]
