"""Nothing of a server outlives whoever wanted it, however that one ends; and a server that fails says why."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from e2e.cluster.waiting import wait_for
from e2e.engines.keeper import LOOK_SECONDS
from e2e.engines.processes import KEEPER, ServerError, running
from e2e.engines.servers import Server

# Like SGLang's: a child in a session of its own, deaf to what is polite, with shared memory and a temporary file.
TREE = """
import mmap, os, signal, subprocess, sys, tempfile, time
notes, below = sys.argv[1], int(sys.argv[2])
signal.signal(signal.SIGTERM, signal.SIG_IGN)
shared = f"/dev/shm/kvfence-test-{os.getpid()}"
with open(shared, "w+b") as file:
    file.truncate(4096)
    kept = mmap.mmap(file.fileno(), 4096)
named = tempfile.NamedTemporaryFile(delete=False).name
if below:
    subprocess.Popen([sys.executable, __file__, notes, str(below - 1)], start_new_session=True)
with open(notes, "a") as file:
    file.write(f"{os.getpid()} {shared} {named}\\n")
time.sleep(600)
"""

WANTS = """
import subprocess, sys, time
subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, start_new_session=True)
time.sleep(600)
"""


class Tree:
    """Three generations of processes below a keeper."""

    def __init__(self, folder: Path) -> None:
        self.notes = folder / "notes"
        script = folder / "tree.py"
        script.write_text(TREE)
        self.command = [sys.executable, str(KEEPER), sys.executable, str(script), str(self.notes), "2"]

    def known(self) -> list[list[str]]:
        """Pid, shared memory and temporary file of each process that has started."""
        return [line.split() for line in self.notes.read_text().splitlines()] if self.notes.exists() else []

    def is_up(self) -> bool:
        return len(self.known()) == 3

    def is_gone(self) -> bool:
        return not any(
            Path("/proc", pid).exists() or Path(shared).exists() or Path(named).exists()
            for pid, shared, named in self.known()
        )

    def first(self, keeper: int) -> str:
        """Pid of the process that is the keeper's child."""
        return next(
            pid for pid, *_ in self.known() if f"\nPPid:\t{keeper}\n" in Path(f"/proc/{pid}/status").read_text()
        )

    def kill(self) -> None:
        for pid, shared, named in self.known():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
            Path(shared).unlink(missing_ok=True)
            Path(named).unlink(missing_ok=True)
            if Path(named).parent.name.startswith("kvfence-"):  # the keeper's; it is left when that was killed itself
                with suppress(OSError):  # not empty yet
                    Path(named).parent.rmdir()


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    made = Tree(tmp_path)
    yield made
    made.kill()


def test_nothing_is_left_when_the_pipe_closes(tree: Tree) -> None:
    with subprocess.Popen(tree.command, stdin=subprocess.PIPE, start_new_session=True) as keeper:
        wait_for("the tree to be up", tree.is_up, 20)
        assert not tree.is_gone()
        assert keeper.stdin is not None
        keeper.stdin.close()
        assert keeper.wait(5) == 0
        assert tree.is_gone()  # at once: the keeper is the last to end


def test_nothing_is_left_when_the_wanting_process_is_killed(tree: Tree) -> None:
    with subprocess.Popen([sys.executable, "-c", WANTS, *tree.command]) as wanting:
        wait_for("the tree to be up", tree.is_up, 20)
        wanting.kill()
    wait_for("the tree to be gone", tree.is_gone, 5)


def test_nothing_is_left_when_the_keeper_is_asked_to_end(tree: Tree) -> None:
    with subprocess.Popen(tree.command, stdin=subprocess.PIPE) as keeper:
        wait_for("the tree to be up", tree.is_up, 20)
        keeper.terminate()
        assert keeper.wait(5) == 128 + signal.SIGTERM
        assert tree.is_gone()


def test_nothing_is_left_when_the_command_s_first_process_ends(tree: Tree) -> None:
    with subprocess.Popen(tree.command, stdin=subprocess.PIPE) as keeper:
        wait_for("the tree to be up", tree.is_up, 20)
        first = tree.first(keeper.pid)
        time.sleep(LOOK_SECONDS + 1)  # so that the keeper has seen whose the shared memory is
        os.kill(int(first), signal.SIGKILL)
        assert keeper.wait(5) == 128 + signal.SIGKILL
        assert tree.is_gone()


def test_the_first_process_ends_when_the_keeper_is_killed(tree: Tree) -> None:
    with subprocess.Popen(tree.command, stdin=subprocess.PIPE) as keeper:
        wait_for("the tree to be up", tree.is_up, 20)
        first = tree.first(keeper.pid)
        keeper.kill()
    wait_for("it to end", lambda: not Path("/proc", first).exists(), 5)


def test_the_status_of_the_command_is_the_keeper_s() -> None:
    with subprocess.Popen([sys.executable, str(KEEPER), "sh", "-c", "exit 3"], stdin=subprocess.PIPE) as keeper:
        assert keeper.wait(20) == 3


def test_a_server_that_ends_fails_with_the_end_of_its_log_and_stops_the_others(tmp_path: Path) -> None:
    with (
        pytest.raises(ServerError, match=r"wrong ended with status 2(?s:.*)--no-such-flag"),
        running([Server("right"), Server("wrong", extra=("--no-such-flag",))], tmp_path),
    ):
        raise AssertionError("it runs with a flag that does not exist")
    assert (tmp_path / "right.log").exists()
    assert not processes_with(str(tmp_path))


def test_a_server_that_is_late_fails(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="slow was not healthy in time"), running([Server("slow")], tmp_path, limit=1):
        raise AssertionError("no server starts in a second")
    assert not processes_with(str(tmp_path))


def processes_with(path: str) -> list[int]:
    """Processes that have a file below this path open."""
    found = []
    for files in Path("/proc").glob("[0-9]*/fd"):
        with suppress(OSError):
            if any(str(file.readlink()).startswith(path) for file in files.iterdir()):
                found.append(int(files.parent.name))
    return found
