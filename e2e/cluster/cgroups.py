"""The control groups of the stage's pods: one folder per hierarchy, under which the kubelet makes its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from e2e.cluster.layout import CGROUP
from e2e.cluster.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

MOUNT = Path("/sys/fs/cgroup")
EMPTY_WITHIN_SECONDS = 15.0


def hierarchies() -> Iterator[Path]:
    """Roots of the hierarchies: one for each controller with cgroup v1, the single one with v2."""
    if (MOUNT / "cgroup.controllers").exists():
        yield MOUNT
    else:
        yield from (path for path in MOUNT.iterdir() if path.is_dir() and not path.is_symlink())


def make() -> None:
    """The kubelet wants the root of its groups to be there; v1's cpuset has no processors until it is told which."""
    for hierarchy in hierarchies():
        group = hierarchy / CGROUP
        group.mkdir(exist_ok=True)
        if hierarchy == MOUNT:  # v2 inherits
            continue
        for name in ("cpuset.cpus", "cpuset.mems"):
            if (group / name).exists() and not (group / name).read_text().strip():
                (group / name).write_text((hierarchy / name).read_text())


def remove() -> None:
    """Remove the groups, innermost first; their processes have been killed.

    Raises:
        StageError: one still has a process in it.
    """
    for hierarchy in hierarchies():
        for folder, _, _ in os.walk(hierarchy / CGROUP, topdown=False):
            _remove_one(Path(folder))


def _remove_one(group: Path) -> None:
    def removed() -> bool:
        try:
            group.rmdir()
        except FileNotFoundError:
            return True
        except OSError:  # a process of it is still being reaped
            return False
        return True

    wait_for(f"control group {group} to be empty", removed, EMPTY_WITHIN_SECONDS, every=0.02)
