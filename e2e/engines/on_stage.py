"""Real SGLang servers as pods on the stage."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from e2e import progress
from e2e.cluster import programs
from e2e.cluster.waiting import wait_for
from e2e.engines import images, pods
from e2e.engines.servers import Reached
from e2e.errors import StageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from e2e.cluster.stage import Stage
    from e2e.engines.servers import Server

READY_SECONDS = 300.0  # five at once take 60 s on two idle cores
ENDED = frozenset({"Failed", "Succeeded"})


@contextmanager
def running(stage: Stage, servers: Sequence[Server], namespace: str) -> Iterator[tuple[Reached, ...]]:
    """Run the servers as pods in a new namespace, wait until all are Ready, and delete the namespace at the end.

    Raises:
        StageError: one ended or is not Ready in time; the message has the end of its log.
    """
    images.load(stage.images)
    stage.kubectl.run("create", "namespace", namespace)
    try:
        stage.kubectl.apply([pods.pod(server, namespace) for server in servers])
        names = ", ".join(server.name for server in servers)
        with progress.step(f"starting pods with SGLang: {names}", f"about {10 + 10 * len(servers)} s"):
            _wait_until_ready(stage, namespace)
        yield tuple(_reached(stage, server, namespace) for server in servers)
    finally:
        stage.kubectl.try_run("delete", "namespace", namespace, "--wait=false")


def _wait_until_ready(stage: Stage, namespace: str) -> None:
    def all_ready() -> bool:
        found = stage.kubectl.get("pods", "--namespace", namespace)["items"]
        for pod in found:
            if pod["status"]["phase"] in ENDED:
                raise StageError(f"pod {pod['metadata']['name']} ended")
        return all(map(_is_ready, found))

    try:
        wait_for("the pods to be Ready", all_ready, READY_SECONDS, every=0.5)
    except StageError as error:
        late = [pod for pod in stage.kubectl.get("pods", "--namespace", namespace)["items"] if not _is_ready(pod)]
        logs = "".join(f"\npod {pod['metadata']['name']}{_log_of(stage, pod)}" for pod in late)
        raise StageError(f"{error}{logs}") from error


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _log_of(stage: Stage, pod: dict[str, Any]) -> str:
    where = ("--namespace", pod["metadata"]["namespace"], pod["metadata"]["name"])
    log = stage.kubectl.try_run("logs", f"--tail={programs.LOG_LINES_SHOWN}", *where)
    waiting = [status.get("state", {}) for status in pod["status"].get("containerStatuses", [])]
    return f": {json.dumps(waiting)}\n{log.stdout or log.stderr}"


def _reached(stage: Stage, server: Server, namespace: str) -> Reached:
    address = stage.kubectl.get("pod", server.name, "--namespace", namespace)["status"]["podIP"]
    return Reached(server, f"http://{address}:{pods.PORTS.http}", address, pods.PORTS.bootstrap)
