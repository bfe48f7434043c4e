"""A program that does not come up says why: its exit code and the end of its log."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from e2e.cluster import programs
from e2e.cluster.programs import Program, StartedProgram
from e2e.errors import StageError

if TYPE_CHECKING:
    from e2e.cluster.layout import Layout
    from e2e.cluster.node import Node


class HereNode:
    """Starts programs on this machine, with no namespaces around."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        layout.logs.mkdir(parents=True)

    def command(self, arguments: list[str]) -> list[str]:
        return ["/bin/sh", "-c", 'exec "$@"', "here", *arguments]


@pytest.fixture
def node(layout: Layout) -> Node:
    return cast("Node", HereNode(layout))


def shell(script: str) -> Program:
    return Program(Path("/bin/sh"), ("-c", script))


def test_a_log_that_is_not_there_and_one_that_is_empty_say_so(tmp_path: Path) -> None:
    assert programs.tail(tmp_path / "none.log") == "    (no log)"
    (tmp_path / "empty.log").touch()
    assert programs.tail(tmp_path / "empty.log") == "    (empty)"


def test_the_last_lines_of_a_log_are_shown(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("".join(f"line {number}\n" for number in range(100)))
    assert programs.tail(tmp_path / "a.log", lines=2) == "    line 98\n    line 99"
    assert len(programs.tail(tmp_path / "a.log").splitlines()) == programs.LOG_LINES_SHOWN


@pytest.mark.parametrize("content", ["x" * 5_000_000, ("y" * 99_000 + "\n") * 20], ids=["one line", "many lines"])
def test_a_huge_log_is_cut_to_what_a_person_reads(content: str, tmp_path: Path) -> None:
    (tmp_path / "huge.log").write_text(content)
    shown = programs.tail(tmp_path / "huge.log")
    assert len(shown) <= 305 * programs.LOG_LINES_SHOWN
    assert content[0] * 300 in shown


def test_a_log_that_is_no_text_is_shown_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "odd.log").write_bytes(b"\xc3(\xff\n" + "é".encode() * 40_000 + b"\nend\n")
    assert programs.tail(tmp_path / "odd.log").endswith("    end")


def test_a_program_that_is_ready_is_waited_for_no_longer(node: Node) -> None:
    running = programs.start(node, shell("exec sleep 60"))
    try:
        running.wait_until("to be ready", lambda: True, 0)
    finally:
        running.process.kill()
        running.process.wait()


def test_a_program_that_ended_says_its_exit_code_and_the_end_of_its_log(node: Node) -> None:
    running = programs.start(node, shell("echo cannot bind; echo port in use >&2; exit 3"))
    running.process.wait(10)
    with pytest.raises(StageError) as caught:
        running.wait_until("to listen", lambda: True, 60)  # something else may answer on its port
    assert str(caught.value) == f"sh ended with exit code 3\n{running.log}:\n    cannot bind\n    port in use"


def test_a_program_that_is_late_says_how_long_it_had_and_the_end_of_its_log(tmp_path: Path) -> None:
    class Alive:
        def poll(self) -> None:
            return None

    log = tmp_path / "etcd.log"
    log.write_text("still loading\n")
    running = StartedProgram(Program(Path("/x/etcd")), log, cast("subprocess.Popen[bytes]", Alive()))
    with pytest.raises(StageError) as caught:
        running.wait_until("to listen", lambda: False, 0)
    assert str(caught.value) == f"waited 0 s for etcd to listen\n{log}:\n    still loading"


def test_a_program_is_started_on_the_node_and_logs_under_its_own_name(node: Node, layout: Layout) -> None:
    log = layout.logs / "sh.log"
    log.write_text("of an earlier start\n")
    running = programs.start(node, shell("echo out; echo err >&2; cat; echo $0"))
    assert running.process.wait(10) == 0  # nothing to read: `cat` ends at once
    assert running.log == log
    assert log.read_text().splitlines()[:3] == ["of an earlier start", "out", "err"]
    assert running.process.args == ["/bin/sh", "-c", 'exec "$@"', "here", "/bin/sh", "-c", running.program.flags[1]]


def test_a_program_is_in_a_session_of_its_own_so_that_ctrl_c_does_not_end_it(node: Node) -> None:
    running = programs.start(node, shell("exec sleep 60"))
    try:
        assert os.getsid(running.process.pid) == running.process.pid
    finally:
        running.process.kill()
        running.process.wait()
