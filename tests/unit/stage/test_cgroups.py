"""The control groups of pods are made in every hierarchy and removed from every one."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.cluster import cgroups
from e2e.cluster.layout import CGROUP
from e2e.errors import StageError


@pytest.fixture
def mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cgroup"
    folder.mkdir()
    monkeypatch.setattr(cgroups, "MOUNT", folder)
    monkeypatch.setattr(cgroups, "EMPTY_WITHIN_SECONDS", 0.0)
    return folder


@pytest.fixture
def v1(mount: Path) -> Path:
    """Hybrid v1, as on the machines of this project: a hierarchy per controller, some by a second name."""
    for name in ("cpu,cpuacct", "cpuset", "memory", "unified"):
        (mount / name).mkdir()
    (mount / "cpu").symlink_to("cpu,cpuacct")
    (mount / "a-file").touch()
    for name, value in (("cpuset.cpus", "0-1\n"), ("cpuset.mems", "0\n")):
        (mount / "cpuset" / name).write_text(value)
    return mount


def test_with_v1_each_hierarchy_counts_once_and_a_second_name_of_one_does_not(v1: Path) -> None:
    assert sorted(path.name for path in cgroups.hierarchies()) == ["cpu,cpuacct", "cpuset", "memory", "unified"]


def test_with_v2_there_is_one_hierarchy(mount: Path) -> None:
    (mount / "cgroup.controllers").touch()
    (mount / "system.slice").mkdir()
    assert list(cgroups.hierarchies()) == [mount]


def test_the_group_is_made_everywhere_and_making_it_again_is_fine(v1: Path) -> None:
    cgroups.make()
    cgroups.make()
    assert len([path for path in v1.glob(f"*/{CGROUP}") if not path.parent.is_symlink()]) == 4


def test_the_group_is_given_the_processors_else_no_pod_may_run_on_any(v1: Path) -> None:
    group = v1 / "cpuset" / CGROUP
    group.mkdir()
    (group / "cpuset.cpus").write_text("\n")  # what the kernel puts there
    (group / "cpuset.mems").write_text("1\n")  # somebody has set it already
    cgroups.make()
    assert (group / "cpuset.cpus").read_text() == "0-1\n"
    assert (group / "cpuset.mems").read_text() == "1\n"


def test_with_v2_the_group_is_made_and_its_processors_are_left_to_the_kernel_which_gives_it_all(mount: Path) -> None:
    (mount / "cgroup.controllers").touch()
    group = mount / CGROUP
    group.mkdir()
    for name in ("cpuset.cpus", "cpuset.mems"):  # the root of v2 has neither
        (group / name).write_text("\n")
    cgroups.make()
    assert [(group / name).read_text() for name in ("cpuset.cpus", "cpuset.mems")] == ["\n", "\n"]


def test_with_v2_the_group_is_made_where_there_is_none(mount: Path) -> None:
    (mount / "cgroup.controllers").touch()
    cgroups.make()
    assert (mount / CGROUP).is_dir()


def test_the_groups_of_pods_are_removed_with_all_that_is_in_them_and_those_of_others_stay(v1: Path) -> None:
    for hierarchy in ("memory", "cpuset"):
        (v1 / hierarchy / CGROUP / "kubepods" / "besteffort" / "pod1").mkdir(parents=True)
    (v1 / "memory" / "another").mkdir()
    cgroups.remove()
    assert list(v1.rglob(CGROUP)) == []
    assert (v1 / "memory" / "another").exists()


def test_removing_what_was_never_there_is_fine(v1: Path) -> None:
    cgroups.remove()
    assert sorted(path.name for path in (v1 / "memory").iterdir()) == []


def test_a_group_that_still_has_something_in_it_is_named(v1: Path) -> None:
    group = v1 / "memory" / CGROUP
    group.mkdir()
    (group / "process").touch()  # what keeps a folder of /sys from being removed is a process
    with pytest.raises(StageError, match=f"control group {group} to be empty"):
        cgroups.remove()
