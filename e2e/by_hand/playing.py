"""Starts the servers of each group, and runs both commands on each scene."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from e2e import progress
from e2e.by_hand import doors
from e2e.by_hand.routers import routing
from e2e.by_hand.scenes import GROUPS, THROUGHOUT, Group, Scene
from e2e.engines import processes
from kvfence.domain.verdicts import Check

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from e2e.by_hand.command import Installed, Ran
    from e2e.engines.processes import Running

COMPARED_WITH = THROUGHOUT[0]


@dataclass(frozen=True)
class Seen:
    """What the commands said of one scene."""

    scene: Scene
    doctor: Ran
    """With `--output json`, as the canary."""
    canary: Ran


@dataclass(frozen=True)
class Up:
    """A group whose servers answer."""

    group: Group
    servers: dict[str, Running]
    """By name; those that are up throughout too."""

    def target(self, scene: Scene) -> str:
        """Return a scene's servers as the commands take them."""
        return ",".join(self.servers[engine.name].url for engine in scene.engines)


def groups(logs: Path) -> Iterator[Up]:
    """Start one group after the other; each is stopped when the next one is asked for.

    Args:
        logs: an existing folder.

    Raises:
        StageError: a server does not come up.
    """
    with processes.running(THROUGHOUT, logs) as throughout:
        for group in GROUPS:
            start = doors.running if group.doors else processes.running
            with start(group.servers, logs) as servers:
                yield Up(group, {one.server.name: one for one in (*throughout, *servers)})


def play(up: Up, kvfence: Installed, logs: Path, *, whole: bool = False) -> Iterator[Seen]:
    """Run both commands on each scene of a group, one after the other.

    Args:
        up: the group.
        kvfence: the program.
        logs: an existing folder.
        whole: run all checks of the canary, and not only those that tests look at.
    """
    for scene in up.group.scenes:
        with progress.step(f"kvfence looks at {scene.name}"), _reached(scene, up, logs) as target:
            doctor = kvfence.kvfence("doctor", target, "--output", "json", key=scene.key)
            asked = ["canary", target, "--rate", "0", "--output", "json"]
            checks = () if whole else scene.checks
            if checks:
                asked += ["--checks", ",".join(checks)]
            if scene.compared and (not checks or Check.PAIR_IDENTITY in checks):
                asked += ["--reference", up.servers[COMPARED_WITH.name].url]
            canary = kvfence.kvfence(*asked, key=scene.key)
        yield Seen(scene, doctor, canary)


@contextmanager
def _reached(scene: Scene, up: Up, logs: Path) -> Iterator[str]:
    """Start the scene's router, if it has one, and give the scene's target as the commands take it."""
    with ExitStack() as started:
        if scene.router is None:
            yield up.target(scene)
        else:
            engines = [up.servers[engine.name] for engine in scene.engines]
            yield started.enter_context(routing(scene.router, engines, logs)).url
