"""What the tests of the stage share: a cache of their own, a layout in it, a process table to write in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from e2e.cluster import golang, process_table
from e2e.cluster.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Sequence

HOST_NAMESPACE = "pid:[1]"
STATES = {"sleeping": "S", "zombie": "Z"}


class FakeProc:
    """A folder in the place of /proc."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "self").mkdir()  # not everything in there is a process
        (folder / "uptime").touch()

    def add(
        self,
        pid: int,
        arguments: Sequence[str],
        *,
        inside: int | None = None,
        namespace: str = HOST_NAMESPACE,
        name: str = "program",
        state: str = "sleeping",
    ) -> None:
        """Add a process; `inside` is its id in a process namespace below the machine's own."""
        place = self.folder / str(pid)
        (place / "ns").mkdir(parents=True)
        (place / "cmdline").write_bytes(b"".join(one.encode() + b"\0" for one in arguments))
        ids = str(pid) if inside is None else f"{pid}\t{inside}"
        (place / "status").write_text(f"Name:\t{name}\nPid:\t{pid}\nNSpid:\t{ids}\nNSpgid:\t{ids}\n")
        (place / "stat").write_text(f"{pid} ({name}) {STATES[state]} 1 1 1 0 -1 4194560\n")
        (place / "ns" / "pid").symlink_to(namespace)

    def remove(self, pid: int) -> None:
        """Let a process be gone."""
        (self.folder / str(pid)).rename(self.folder.parent / f"gone-{pid}")


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test of this folder touches the stage's real cache."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("KVFENCE_STAGE_CACHE", str(folder))
    return folder


@pytest.fixture
def proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell that has proxies for the world outside, and something else too."""
    for name in ("HTTPS_PROXY", "http_proxy", "NO_PROXY", "All_Proxy"):
        monkeypatch.setenv(name, "http://proxy.example:3128")
    monkeypatch.setenv("UNRELATED", "stays")


@pytest.fixture
def layout(cache_folder: Path) -> Layout:
    """A stage with a node that was never started."""
    return Layout("trial", 7, with_node=True, root=cache_folder)


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeProc:
    """A process table without processes."""
    fake = FakeProc(tmp_path / "proc")
    monkeypatch.setattr(process_table, "PROC", fake.folder)
    return fake


@pytest.fixture
def elsewhere(tmp_path: Path, proc: FakeProc) -> Path:
    """A stage of the same name is up, started from another cache folder; this is the program of its node."""
    program = tmp_path / "another-cache" / "go-init" / "0123456789abcdef" / golang.INIT
    proc.add(41, [str(program), "trial"], inside=1, namespace="pid:[4026532001]")
    return program
