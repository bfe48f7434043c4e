"""Whoever cannot install Debian packages is told what to install."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from e2e.cluster import packages
from e2e.errors import StageError


@pytest.fixture
def wanted(tmp_path: Path) -> dict[str, str]:
    """Packages that bring files of this test's own; `bring` puts one there."""
    return {"shell": "sh", "first": str(tmp_path / "first"), "second": str(tmp_path / "second")}


class Apt:
    """In the place of `apt-get`."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.fails: set[str] = set()
        self.brings: list[str] = []

    def __call__(self, command: tuple[str, ...], **_: object) -> subprocess.CompletedProcess[bytes]:
        assert command[:2] == ("apt-get", "-q")
        self.calls.append(command[2:])
        if command[2] == "install":
            for path in self.brings:
                Path(path).touch()
        code = 100 if command[2] in self.fails else 0
        return subprocess.CompletedProcess(command, code, b"", b"E: Unable to locate package\n" if code else b"")


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch) -> Apt:
    """This is root on Debian, with an `apt-get` that does nothing."""
    fake, which = Apt(), shutil.which
    monkeypatch.setattr(subprocess, "run", fake)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: "/x/apt-get" if name == "apt-get" else which(name))
    return fake


def test_what_is_on_the_path_or_in_its_place_is_not_missing(wanted: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "second").touch()
    assert packages.missing(wanted) == ["first"]


def test_whoever_is_not_root_is_told_the_command_for_all_that_is_missing(
    wanted: dict[str, str], apt: Apt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(StageError, match=r"run, as root, `apt-get install --no-install-recommends first second`$"):
        packages.install(wanted)
    assert apt.calls == []


def test_a_machine_without_apt_is_told_the_packages(
    wanted: dict[str, str], apt: Apt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(StageError, match="install --no-install-recommends shell first second`"):
        packages.install(wanted)
    assert apt.calls == []


def test_nothing_is_asked_of_anyone_when_nothing_is_missing(apt: Apt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    packages.install({"shell": "sh"})
    assert apt.calls == []


def test_what_is_missing_is_installed_and_nothing_else(wanted: dict[str, str], apt: Apt) -> None:
    apt.brings = [wanted["first"], wanted["second"]]
    packages.install(wanted)
    assert apt.calls == [("update",), ("install", "-y", "--no-install-recommends", "first", "second")]


def test_an_update_that_fails_in_part_is_no_reason_to_stop(wanted: dict[str, str], apt: Apt) -> None:
    apt.brings = [wanted["first"], wanted["second"]]
    apt.fails = {"update"}
    packages.install(wanted)
    assert packages.missing(wanted) == []


def test_an_installation_that_fails_has_the_command_and_what_apt_said(wanted: dict[str, str], apt: Apt) -> None:
    apt.fails = {"install"}
    with pytest.raises(StageError) as caught:
        packages.install(wanted)
    command = "apt-get install --no-install-recommends first second"
    assert str(caught.value) == f"`{command}` failed: E: Unable to locate package"


def test_a_package_whose_file_lies_elsewhere_is_named(wanted: dict[str, str], apt: Apt) -> None:
    apt.brings = [wanted["first"]]
    with pytest.raises(StageError, match="installed second, but their files are not where"):
        packages.install(wanted)


def test_the_node_runs_pods_with_runc_since_crun_does_not_work_on_hybrid_cgroups() -> None:
    assert "runc" in packages.NODE_PACKAGES
    assert "crun" not in packages.NODE_PACKAGES
