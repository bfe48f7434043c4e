"""A process that is started for the stage outlives its starter, and none stays a zombie."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.cluster import children


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "it.log"


def test_what_a_child_says_is_added_to_its_log(log: Path) -> None:
    log.write_text("of an earlier start\n")
    child = children.start(["sh", "-c", "echo out; echo err >&2"], log)
    assert child.wait(10) == 0
    assert log.read_text() == "of an earlier start\nout\nerr\n"


def test_a_child_asks_no_proxy_for_the_api_server(log: Path, proxies: None) -> None:
    assert children.start(["env"], log).wait(10) == 0
    heard = log.read_text().splitlines()
    assert [line for line in heard if line.partition("=")[0].lower().endswith("_proxy")] == []
    assert "UNRELATED=stays" in heard


def test_a_child_does_not_wait_for_a_terminal(log: Path) -> None:
    assert children.start(["sh", "-c", "cat; exit 7"], log).wait(10) == 7


def test_a_child_is_in_a_session_of_its_own_so_that_ctrl_c_does_not_end_it(log: Path) -> None:
    child = children.start(["sleep", "60"], log)
    try:
        assert os.getsid(child.pid) == child.pid
    finally:
        child.kill()
        child.wait()


def test_a_child_that_ended_is_reaped_by_the_next_start(log: Path) -> None:
    ended = children.start(["true"], log)
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # has ended, and nobody has asked
    children.start(["true"], log).wait(10)
    assert ended.returncode == 0


def test_python_does_not_complain_of_a_child_that_its_starter_forgot(log: Path) -> None:
    pid = children.start(["sleep", "60"], log).pid
    gc.collect()  # a complaint here is an error of this test
    (kept,) = (child for child in children._started if child.pid == pid)
    kept.kill()
    kept.wait()


def test_python_does_not_complain_at_its_end_of_children_that_live_on(log: Path) -> None:
    start = f"children.start(['sleep', '60'], pathlib.Path({str(log)!r}))"
    program = f"import pathlib\nfrom e2e.cluster import children\nprint({start}.pid)"
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True, timeout=30
    )
    os.kill(int(ended.stdout), signal.SIGKILL)
    assert ended.stderr == ""
