"""The process table as it is read: what is gone reads as empty, and only an open door counts as one."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from e2e.cluster import process_table

if TYPE_CHECKING:
    from tests.unit.stage.conftest import FakeProc

HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
LISTEN, ESTABLISHED, TIME_WAIT = "0A", "01", "06"


def row(local: str, state: str, remote: str = "00000000:0000") -> str:
    return f"   0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000     0        0 2 1 0000 100 0\n"


def test_processes_are_the_entries_that_are_numbers(proc: FakeProc) -> None:
    proc.add(1, ["/sbin/init"])
    proc.add(42, ["sleep", "1"])
    assert sorted(process_table.pids()) == [1, 42]


def test_a_command_line_is_read_as_it_was_given(proc: FakeProc) -> None:
    proc.add(42, ["sh", "-ec", "echo a b\necho c", ""])
    assert process_table.arguments(42) == ["sh", "-ec", "echo a b\necho c", ""]


def test_a_command_line_that_is_no_text_is_read_all_the_same(proc: FakeProc) -> None:
    proc.add(42, ["x"])
    (proc.folder / "42" / "cmdline").write_bytes(b"p\xff\0")
    assert process_table.arguments(42) == ["p\ufffd"]


def test_a_kernel_thread_has_no_command_line(proc: FakeProc) -> None:
    proc.add(2, [])
    assert process_table.arguments(2) == []


def test_a_process_that_has_gone_reads_as_empty(proc: FakeProc) -> None:
    proc.add(42, ["sleep", "1"], inside=1, namespace="pid:[2]")
    assert process_table.alive(42)
    proc.remove(42)
    assert process_table.arguments(42) == []
    assert process_table.pid_namespace(42) == ""
    assert process_table.pid_inside(42) == 0
    assert not process_table.alive(42)
    assert not process_table.listens(42, 80)


def test_a_process_that_goes_between_opening_and_reading_reads_as_empty(
    proc: FakeProc, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object, **__: object) -> str:
        raise ProcessLookupError(3, "No such process")  # what the kernel says then

    proc.add(42, ["sleep", "1"], inside=1)
    for name in ("read_text", "read_bytes"):
        monkeypatch.setattr(type(proc.folder), name, gone)
    assert process_table.arguments(42) == []
    assert process_table.pid_inside(42) == 0
    assert not process_table.alive(42)
    assert not process_table.listens(42, 80)


def test_the_id_inside_is_the_innermost_one(proc: FakeProc) -> None:
    proc.add(42, ["init"], inside=1)
    proc.add(43, ["sleep"])
    (proc.folder / "43" / "status").write_text("Name:\tsleep\nNSpid:\t43\t7\t5\nNSpgid:\t9\n")
    proc.add(44, ["sleep"])
    assert [process_table.pid_inside(pid) for pid in (42, 43, 44)] == [1, 5, 44]


def test_a_name_that_looks_like_a_line_of_its_own_does_not_mislead(proc: FakeProc) -> None:
    proc.add(42, ["x"], name="NSpid: 1")
    proc.add(43, ["x"], name="x) Z (")
    assert process_table.pid_inside(42) == 42
    assert process_table.alive(43)


def test_a_name_that_is_cut_within_a_letter_is_read_all_the_same(proc: FakeProc) -> None:
    proc.add(42, ["x"], inside=1)
    for name in ("status", "stat"):
        place = proc.folder / "42" / name
        place.write_bytes(place.read_bytes().replace(b"program", b"caf\xc3"))
    assert process_table.pid_inside(42) == 1
    assert process_table.alive(42)


def test_the_process_namespace_is_told_apart(proc: FakeProc) -> None:
    proc.add(42, ["x"], namespace="pid:[4026532001]")
    assert process_table.pid_namespace(42) == "pid:[4026532001]"


def test_a_zombie_is_not_alive(proc: FakeProc) -> None:
    proc.add(42, [], state="zombie", name="kube-apiserver")
    proc.add(43, ["kube-apiserver"], name="kube-apiserver")
    assert (process_table.alive(42), process_table.alive(43)) == (False, True)


@pytest.mark.parametrize(
    ("table", "local"),
    [("tcp", "0100007F:094B"), ("tcp", "00000000:094B"), ("tcp6", "00000000000000000000000000000000:094B")],
)
def test_a_listening_socket_is_seen_for_both_families(table: str, local: str, proc: FakeProc) -> None:
    proc.add(42, ["etcd"])
    (proc.folder / "42" / "net").mkdir()
    (proc.folder / "42" / "net" / table).write_text(HEADER + row("0100007F:0050", LISTEN) + row(local, LISTEN))
    assert process_table.listens(42, 2379)
    assert not process_table.listens(42, 2380)


@pytest.mark.parametrize("state", [ESTABLISHED, TIME_WAIT])
@pytest.mark.parametrize("table", ["tcp", "tcp6"])
def test_a_socket_in_another_state_is_no_open_door(table: str, state: str, proc: FakeProc) -> None:
    proc.add(42, ["etcd"])
    (proc.folder / "42" / "net").mkdir()
    (proc.folder / "42" / "net" / table).write_text(
        HEADER + row("0100007F:094B", state) + row("0100007F:0050", LISTEN, remote="0100007F:094B")
    )
    assert not process_table.listens(42, 2379)


def test_a_machine_without_ipv6_is_read_all_the_same(proc: FakeProc) -> None:
    proc.add(42, ["etcd"])
    (proc.folder / "42" / "net").mkdir()
    (proc.folder / "42" / "net" / "tcp").write_text(HEADER + row("0100007F:094B", LISTEN))
    assert process_table.listens(42, 2379)


def test_the_real_process_table_reads_as_the_fake_one_does() -> None:
    pid = os.getpid()
    assert pid in process_table.pids()
    assert process_table.arguments(pid)[0] != ""
    assert process_table.pid_namespace(pid).startswith("pid:[")
    assert process_table.pid_inside(pid) == pid
    assert process_table.alive(pid)
    assert not process_table.listens(pid, 1)


@pytest.mark.parametrize(("end", "number"), [("kill", signal.SIGKILL), ("terminate", signal.SIGTERM)])
def test_a_process_is_ended_and_one_that_is_gone_needs_no_ending(end: str, number: signal.Signals) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        getattr(process_table, end)(process.pid)
        assert process.wait(10) == -number
    getattr(process_table, end)(2**31 - 1)  # more than any machine counts to


def test_a_stopped_process_is_let_go_on_and_one_that_is_gone_is_left() -> None:
    with subprocess.Popen(["sh", "-c", "kill -STOP $$; exit 7"]) as process:
        assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
        process_table.go_on(process.pid)
        assert process.wait(10) == 7
    process_table.go_on(2**31 - 1)
