"""The stage always comes up, whatever an earlier start left behind, or says why not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from e2e.cluster import busybox, control_plane, golang, node, process_table, stage
from e2e.cluster.layout import STAGE
from e2e.cluster.waiting import wait_for
from e2e.errors import StageError
from e2e.lifecycle.conftest import ALL_ON

if TYPE_CHECKING:
    from pathlib import Path

PHASE_SECONDS = 90.0
UP = [sys.executable, "-m", "e2e.cluster", "up", "--audit"]


def assert_whole(up: stage.Stage) -> None:
    """Every program runs, and the node runs a pod."""
    assert stage.missing_programs(up) == []
    up.kubectl.run("apply", "--filename", "-", given=json.dumps(busybox.pod("alive", ["sleep", "600"])))
    up.kubectl.run("wait", "--for=condition=Ready", "pod/alive", "--timeout=60s")


def kill_command_when_it_runs(program: str, log: Path) -> None:
    """Start `up`, wait until `program` runs on the node, and kill -9 the command itself."""
    with log.open("wb") as said, subprocess.Popen(UP, stderr=said) as command:
        wait_for(program, lambda: runs(program) or command.poll() is not None, PHASE_SECONDS, every=0.005)
        assert command.poll() is None, log.read_text()
        command.kill()


def runs(program: str) -> bool:
    found = node.find(STAGE)
    return found is not None and (program == golang.INIT or program in found.processes())


@pytest.mark.usefixtures("no_stage")
@pytest.mark.parametrize("program", [golang.INIT, "etcd", "containerd", "kube-apiserver", "kubelet", "network-policy"])
def test_it_comes_up_after_a_kill_9_of_everything_while(program: str, tmp_path: Path) -> None:
    kill_command_when_it_runs(program, tmp_path / "up.log")
    found = node.find(STAGE)
    assert found is not None
    for pid in (*found.processes().values(), found.pid):
        process_table.kill(pid)
    assert_whole(stage.up(STAGE, ALL_ON))


@pytest.mark.usefixtures("no_stage")
def test_it_comes_up_after_its_command_alone_was_killed_half_way(tmp_path: Path) -> None:
    kill_command_when_it_runs("kube-apiserver", tmp_path / "up.log")
    assert runs("etcd"), "what the command started is still there"
    assert_whole(stage.up(STAGE, ALL_ON))


@pytest.mark.usefixtures("no_stage")
def test_what_is_whole_stays_and_what_has_lost_a_program_is_started_afresh() -> None:
    first = stage.up(STAGE, ALL_ON)
    again = stage.up(STAGE, ALL_ON)
    assert again.node.processes() == first.node.processes()
    process_table.kill(first.node.processes()["kube-scheduler"])
    wait_for("kube-scheduler to be gone", lambda: not runs("kube-scheduler"), PHASE_SECONDS)
    assert subprocess.run([*UP[:3], "status"], capture_output=True, check=False).returncode == 1
    assert_whole(stage.up(STAGE, ALL_ON))
    assert subprocess.run([*UP[:3], "status"], capture_output=True, check=False).returncode == 0


@pytest.mark.usefixtures("no_stage")
def test_it_comes_up_over_a_state_folder_full_of_lies_and_leaves_strangers_alone() -> None:
    """A stranger's process has the words of ours in its command line, and the state names that process as ours."""
    words = [f"/elsewhere/{golang.INIT}", STAGE.name]
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", *words]) as stranger:
        STAGE.state.mkdir(parents=True, exist_ok=True)
        (STAGE.state / "stage.json").write_text(f'{{"switches": {{}}, "parts": {{}}, "pid": {stranger.pid}}}')
        (STAGE.state / "etcd").write_text("not a folder")
        (STAGE.state / "kubelet").symlink_to("/etc")
        (STAGE.state / "pki").mkdir()
        (STAGE.state / "pki" / "admin.kubeconfig").write_text("{")
        assert_whole(stage.up(STAGE, ALL_ON))
        assert stranger.poll() is None
        stranger.kill()


@pytest.mark.usefixtures("no_stage")
def test_an_api_server_that_hangs_is_started_afresh_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hang is made by stopping the process; the limit is shortened so that the test does not wait 45 s for it."""
    monkeypatch.setattr(stage, "APISERVER_SECONDS", 20.0)
    stopped = []

    def stop_the_first() -> None:
        wait_for("kube-apiserver", lambda: runs("kube-apiserver"), PHASE_SECONDS, every=0.005)
        found = node.find(STAGE)
        assert found is not None
        stopped.append(found.processes()["kube-apiserver"])
        os.kill(stopped[0], signal.SIGSTOP)

    saboteur = threading.Thread(target=stop_the_first)
    saboteur.start()
    up = stage.up(STAGE, ALL_ON)
    saboteur.join()
    assert not process_table.alive(stopped[0])
    assert_whole(up)


@pytest.mark.usefixtures("no_stage")
def test_a_part_that_cannot_start_is_named_with_its_exit_code_and_the_end_of_its_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(control_plane, "ETCD_CLIENTS", "http://nowhere.invalid:1")
    with pytest.raises(StageError, match=r"etcd ended with exit code 1\n.*etcd\.log:\n(.*\n)*.*nowhere\.invalid"):
        stage.up(STAGE, ALL_ON)
