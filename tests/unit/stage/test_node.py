"""The node is found in the process table and nowhere else, so a stranger must never be taken for it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from e2e.cluster import cgroups, golang, node, process_table
from e2e.cluster.layout import Layout
from e2e.cluster.node import Node
from e2e.errors import StageError

if TYPE_CHECKING:
    from tests.unit.stage.conftest import FakeProc

INIT = f"/anywhere/go-init/0123456789abcdef/{golang.INIT}"
INSIDE = "pid:[4026532001]"


@pytest.fixture
def kills(monkeypatch: pytest.MonkeyPatch, proc: FakeProc) -> list[int]:
    """Whoever is ended; the kernel ends those in the process namespace of a first process with it."""
    ended: list[int] = []

    def kill(pid: int) -> None:
        ended.append(pid)
        others = node._inhabitants(pid) if process_table.pid_inside(pid) == 1 else [pid]
        for one in others:
            proc.remove(one)

    monkeypatch.setattr(process_table, "kill", kill)
    monkeypatch.setattr(node, "GONE_WITHIN_SECONDS", 0.0)
    monkeypatch.setattr(cgroups, "remove", lambda: None)
    return ended


STRANGERS = {
    "an editor": ["vim", golang.INIT, "trial"],
    "a pager with the log open": ["less", f"/x/{golang.INIT}", "trial"],
    "a search": ["grep", "-r", golang.INIT, "trial"],
    "python": ["python3", "-m", "something", INIT, "trial"],
    "the build": ["go", "build", "-o", INIT],
    "another stage": [INIT, "trial2"],
    "another stage whose name ends alike": [INIT, "a-trial"],
    "the name alone": ["trial"],
    "init without a name": [INIT],
    "more words after the name": [INIT, "trial", "more"],
    "a shell that only tells of it": ["sh", "-c", f"echo {INIT} trial"],
    "a shell that tells of it, with the name for an argument": ["sh", "-c", f"echo {INIT} $0", "trial"],
    "a shell that the stage does not use": ["fish", "-c", "script", INIT, "trial"],
    "a program whose name only ends alike": ["/x/not-" + golang.INIT, "not-" + golang.INIT, "trial"],
    "nothing at all": [],
}


@pytest.mark.parametrize("arguments", STRANGERS.values(), ids=STRANGERS.keys())
def test_a_stranger_is_neither_found_nor_ended(
    arguments: list[str], layout: Layout, proc: FakeProc, kills: list[int]
) -> None:
    proc.add(50, arguments, inside=1, namespace=INSIDE)  # it may be the first in a namespace of its own
    assert node.find(layout) is None
    node.stop(layout)
    assert kills == []


def test_the_first_process_of_the_stage_is_found_and_its_keeper_is_not(layout: Layout, proc: FakeProc) -> None:
    proc.add(40, ["unshare", "--pid", "--fork", "/bin/sh", "-ec", "script", INIT, "trial"])
    proc.add(41, [INIT, "trial"], inside=1, namespace=INSIDE)
    assert node.find(layout) == Node(layout, 41)


def test_a_keeper_without_its_first_process_is_not_the_node_but_is_ended(
    layout: Layout, proc: FakeProc, kills: list[int]
) -> None:
    proc.add(40, ["unshare", "--pid", "--fork", "/bin/sh", "-ec", "script", INIT, "trial"])
    assert node.find(layout) is None
    node.stop(layout)
    assert kills == [40]


def test_the_child_that_the_keeper_forked_is_not_the_node_yet_but_is_ended_with_what_is_around_it(
    layout: Layout, proc: FakeProc, kills: list[int]
) -> None:
    proc.add(41, ["unshare", "--pid", "--fork", "/bin/sh", "-ec", "script", INIT, "trial"], inside=1, namespace=INSIDE)
    proc.add(42, ["mount"], inside=2, namespace=INSIDE)
    assert node.find(layout) is None
    node.stop(layout)
    assert kills == [41]
    assert not process_table.alive(42)


def test_a_node_that_ends_while_it_is_looked_at_is_not_there(
    layout: Layout, proc: FakeProc, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc.add(41, [INIT, "trial"], inside=1, namespace=INSIDE)
    looks = iter([[INIT, "trial"]])
    monkeypatch.setattr(process_table, "arguments", lambda _: next(looks, []))
    assert node.find(layout) is None


def test_a_strangers_shell_script_that_is_given_our_words_is_left_alone(
    layout: Layout, proc: FakeProc, kills: list[int]
) -> None:
    proc.add(41, ["/bin/sh", "script.sh", INIT, "trial"])
    node.stop(layout)
    assert kills == []


def test_stopping_waits_for_every_process_of_the_node(
    layout: Layout, proc: FakeProc, monkeypatch: pytest.MonkeyPatch, kills: list[int]
) -> None:
    proc.add(41, [INIT, "trial"], inside=1, namespace=INSIDE)
    proc.add(42, ["etcd"], inside=7, namespace=INSIDE)
    monkeypatch.setattr(process_table, "kill", proc.remove)  # the kernel is not done yet
    with pytest.raises(StageError, match="42"):
        node.stop(layout)


def test_stopping_what_is_not_there_is_fine(layout: Layout, proc: FakeProc, kills: list[int]) -> None:
    node.stop(layout)
    assert kills == []


def test_a_stopped_entrance_of_the_stage_is_let_go_on_since_it_holds_the_network(
    layout: Layout, proc: FakeProc, monkeypatch: pytest.MonkeyPatch, kills: list[int]
) -> None:
    let_go: list[int] = []

    def go_on(pid: int) -> None:
        let_go.append(pid)
        proc.remove(pid)

    monkeypatch.setattr(process_table, "go_on", go_on)
    proc.add(60, [*Node(layout, 41).command(["/cache/etcd", f"--data-dir={layout.state}/etcd"])])
    node.stop(layout)
    assert (let_go, kills) == ([60], [])


def test_the_first_process_ends_only_after_a_stopped_entrance_went_on_and_stopping_waits_for_both(
    layout: Layout, proc: FakeProc, monkeypatch: pytest.MonkeyPatch, kills: list[int]
) -> None:
    """The kernel keeps the first process until a program's end was noted by the `nsenter` that waits for it."""
    proc.add(41, [INIT, "trial"], inside=1, namespace=INSIDE)
    proc.add(60, [*Node(layout, 41).command(["/cache/etcd", f"--data-dir={layout.state}/etcd"])])
    killed: list[int] = []
    monkeypatch.setattr(process_table, "kill", killed.append)

    def go_on(pid: int) -> None:
        assert killed == [41], "before that there is nothing to take note of"
        proc.remove(pid)
        proc.remove(41)

    monkeypatch.setattr(process_table, "go_on", go_on)
    node.stop(layout)
    assert process_table.pids() == kills == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["nsenter", "--target", "41", "--", "/cache/etcd", "--data-dir={stages}/trial2/etcd"],
        ["nsenter", "--target", "41", "--", "/cache/etcd", "--data-dir=/elsewhere/stages/trial/etcd"],
        ["vim", "{stages}/trial/stage.json"],
        ["tail", "-f", "{stages}/trial/logs/etcd.log"],
    ],
    ids=" ".join,
)
def test_nobody_elses_process_is_waited_for(
    arguments: list[str], layout: Layout, proc: FakeProc, monkeypatch: pytest.MonkeyPatch, kills: list[int]
) -> None:
    let_go: list[int] = []
    monkeypatch.setattr(process_table, "go_on", let_go.append)
    proc.add(60, [one.format(stages=layout.state.parent) for one in arguments])
    node.stop(layout)  # waits for nothing, else it would say so
    assert (let_go, kills) == ([], [])


def test_the_programs_of_the_node_are_those_in_its_namespace_and_not_in_pods(layout: Layout, proc: FakeProc) -> None:
    proc.add(41, [INIT, "trial"], inside=1, namespace=INSIDE)
    proc.add(42, ["/cache/etcd", "--flag"], inside=7, namespace=INSIDE)
    proc.add(43, [], inside=8, namespace=INSIDE, state="zombie")
    proc.add(44, ["/pause"], inside=1, namespace="pid:[4026532999]")
    proc.add(45, ["/usr/bin/etcd"])
    assert Node(layout, 41).processes() == {"etcd": 42}


def test_a_node_that_has_gone_has_no_programs_instead_of_those_of_the_whole_machine(
    layout: Layout, proc: FakeProc
) -> None:
    proc.add(45, ["/usr/bin/etcd"])
    (proc.folder / "45" / "ns" / "pid").unlink()
    assert Node(layout, 41).processes() == {}


class Started(Exception):  # noqa: N818  # not an error: how far a start came
    """What would be run, in the place of running it."""

    def __init__(self, command: list[str]) -> None:
        self.command = command


@pytest.fixture
def almost_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start gets as far as the first command that root alone may run, and says which."""

    def started(command: list[str], **_: Any) -> None:
        raise Started(command)

    monkeypatch.setattr(cgroups, "make", lambda: None)
    monkeypatch.setattr(golang, "init", lambda: Path(INIT).parent)
    monkeypatch.setattr(subprocess, "Popen", started)


@pytest.mark.parametrize("through", ["itself", "a link", "a roundabout way"])
def test_a_cache_in_a_folder_that_the_node_hides_is_refused_before_anything_is_made(
    through: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, almost_root: None
) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (tmp_path / "link").symlink_to("hidden")
    monkeypatch.setattr(node, "PRIVATE_FOLDERS", (*node.PRIVATE_FOLDERS, str(hidden)))
    ways = {"itself": hidden, "a link": tmp_path / "link", "a roundabout way": tmp_path / "x" / ".." / "hidden"}
    layout = Layout("trial", 7, with_node=True, root=ways[through] / "cache")
    with pytest.raises(StageError, match=r"lies in .*hidden: set KVFENCE_STAGE_CACHE to another place"):
        node.start(layout)
    assert list(hidden.iterdir()) == []


@pytest.mark.parametrize("folder", ["/run", "/var/lib", "/var/log"])
def test_the_folders_that_containerd_and_others_write_to_are_the_nodes_own(folder: str) -> None:
    assert folder in node.PRIVATE_FOLDERS
    assert f"mount -t tmpfs -o mode=755 tmpfs {folder}" in node._set_up().splitlines()


def start_command(layout: Layout) -> list[str]:
    with pytest.raises(Started) as caught:
        node.start(layout)
    return caught.value.command


def test_a_start_is_found_by_what_it_is_called_with(layout: Layout, proc: FakeProc, almost_root: None) -> None:
    proc.add(40, start_command(layout))
    shell = start_command(layout)[start_command(layout).index("/bin/sh") :]
    proc.add(41, shell, inside=1, namespace=INSIDE)
    assert node._holders(layout) == [40], "the keeper, with which its child ends"
    assert node.find(layout) is None, "not before it is init"


def test_the_node_ends_with_its_keeper_so_that_a_killed_run_leaves_no_shim(layout: Layout, almost_root: None) -> None:
    command = start_command(layout)
    assert {"--kill-child", "--fork", "--pid", "--mount", "--net"} <= set(command[: command.index("/bin/sh")])
    assert command[0] == "unshare"


def test_mounts_of_the_node_do_not_reach_this_machine(layout: Layout, almost_root: None) -> None:
    command = start_command(layout)
    assert command[command.index("--propagation") + 1] == "private"


def test_no_kernel_setting_that_the_kubelet_writes_reaches_this_machine() -> None:
    lines = node._set_up().splitlines()
    for name, value in node.KERNEL_SETTINGS.items():
        (bind,) = (line for line in lines if line.endswith(f" /proc/sys/{name}"))
        words = bind.split()
        assert words[:2] == ["mount", "--bind"]
        assert f"echo {value} > {words[2]}" in lines[: lines.index(bind)]
        assert words[2].startswith("/run/")
    assert lines.index("mount -t tmpfs -o mode=755 tmpfs /run") < min(
        number for number, line in enumerate(lines) if "/run/kernel-settings" in line
    )


def test_the_settings_are_those_that_the_kubelet_demands() -> None:
    expected = {"kernel/panic": 10, "kernel/panic_on_oops": 1, "vm/overcommit_memory": 1, "vm/panic_on_oom": 0}
    assert expected.items() <= node.KERNEL_SETTINGS.items()
    assert {"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"} <= node.KERNEL_SETTINGS.keys()


@pytest.mark.parametrize(("is_there", "loaded"), [(False, ["br_netfilter"]), (True, [])])
def test_the_kernel_is_given_the_module_without_which_there_is_no_setting_for_bridges(
    is_there: bool, loaded: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "modprobe").write_text(f"#!/bin/sh\necho $@ >> {tmp_path}/loaded\n")
    (tmp_path / "modprobe").chmod(0o755)
    (tmp_path / "loaded").touch()
    if is_there:
        (tmp_path / "setting").touch()
    (written,) = (line for line in node._set_up().splitlines() if line.endswith("> /proc/sys/" + node.BRIDGE_SETTING))
    monkeypatch.setattr(node, "BRIDGE_SETTING", f"../..{tmp_path}/setting")  # below /proc/sys
    lines = node._set_up().splitlines()
    (load,) = (number for number, line in enumerate(lines) if "br_netfilter" in line)
    assert load < lines.index(written)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run(["/bin/sh", "-ec", lines[load]], env=environment, check=True)
    assert (tmp_path / "loaded").read_text().split() == loaded


def test_what_is_written_to_the_kernel_itself_belongs_to_the_network_namespace() -> None:
    written = [line.split()[-1] for line in node._set_up().splitlines() if "> /proc/sys/" in line]
    assert written != []
    assert [name for name in written if not name.startswith("/proc/sys/net/")] == []


def test_mounts_of_volumes_reach_containers_and_the_shell_becomes_the_first_process() -> None:
    lines = node._set_up().splitlines()
    assert lines[0] == "mount --make-rshared /"
    assert lines[-1] == 'exec "$0" "$1"'
    assert subprocess.run(["/bin/sh", "-n", "-c", node._set_up()], check=False).returncode == 0


def test_commands_enter_by_nsenter_since_ip_netns_hides_the_cgroups(layout: Layout) -> None:
    command = Node(layout, 41).command(["ip", "link"])
    assert command[:3] == ["nsenter", "--target", "41"]
    assert command[-3:] == ["--", "ip", "link"]
    assert set(command[3:-3]) == {"--net", "--mount", "--pid", "--ipc", "--uts"}


def test_the_node_has_no_default_route_since_with_one_the_kubelet_stalls_on_name_servers(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    def run(command: tuple[str, ...], **_: object) -> subprocess.CompletedProcess[bytes]:
        asked.append(command)
        return subprocess.CompletedProcess(command, 0, b"", b"")

    monkeypatch.setattr(subprocess, "run", run)
    node._connect(Node(layout, 41))
    on_node = [command[command.index("--") + 1 :] for command in asked if command[0] == "nsenter"]
    here = [command for command in asked if command[0] == "ip"]
    assert on_node != []
    assert not [command for command in on_node if "route" in command]
    assert {command[3] for command in here if command[1] == "route"} == {"10.244.0.0/24", "10.96.0.0/16"}


@pytest.fixture
def here(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> Node:
    """A node whose commands run on this machine."""
    monkeypatch.setattr(Node, "command", lambda self, arguments: list(arguments))
    return Node(layout, 41)


def test_a_command_on_the_node_is_given_its_input_and_returns_its_output(here: Node) -> None:
    assert here.run("cat", given=b"caf\xc3\xa9 \xff") == "café \ufffd"


@pytest.mark.parametrize(
    ("script", "said"), [("echo why >&2; echo out; exit 2", "why"), ("echo only out; exit 2", "only out")]
)
def test_a_command_that_fails_on_the_node_has_what_it_said(script: str, said: str, here: Node) -> None:
    with pytest.raises(StageError, match=rf"` failed: {said}$"):
        here.run("sh", "-c", script)


def test_a_command_that_hangs_on_the_node_is_named_with_its_time(here: Node) -> None:
    with pytest.raises(StageError, match=r"^`sleep 60` did not end in 0 s$"):
        here.run("sleep", "60", seconds=0.05)
