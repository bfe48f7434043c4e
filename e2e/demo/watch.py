"""Follow the pool and its pods as they change, with `kubectl get --watch`."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from typing import TYPE_CHECKING, Any

from e2e.commands import without_proxies
from e2e.demo.view import View, view
from e2e.errors import StageError
from kvfence.render.identity import POOL_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

    from e2e.cluster.kubectl import Kubectl

POOLS = "inferencepools.kvfence.io"
FAILURES = 5
"""How often in a row a watch may end with an error at once before it is given up."""
PAUSE_SECONDS = 1.0


class Watch:
    """Two watches, and what they have said so far. Use it in a `with`, which ends them."""

    def __init__(self, kubectl: Kubectl, namespace: str, pool: str) -> None:
        self._pool: dict[str, Any] | None = None
        self._pods: dict[str, dict[str, Any]] = {}
        self._news: queue.Queue[tuple[str, dict[str, Any]] | StageError] = queue.Queue()
        where = ("--namespace", namespace, "--watch", "--output-watch-events", "--output=json")
        base = [str(kubectl.program), "--kubeconfig", str(kubectl.kubeconfig), "get"]
        self._over = threading.Event()
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._threads = [
            threading.Thread(target=self._follow, args=(kind, [*base, *what, *where]), daemon=True)
            for kind, what in (("pool", (POOLS, pool)), ("pods", ("pods", f"--selector={POOL_LABEL}={pool}")))
        ]

    def __enter__(self) -> Watch:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for one in self._running.values():
            one.kill()
        for thread in self._threads:
            thread.join(timeout=5.0)

    def changed(self, seconds: float) -> View | None:
        """Wait for so many seconds at most; return the pool as it is after the next change, if there was one.

        Raises:
            StageError: the API server cannot be watched, or the pool is gone.
        """
        try:
            self._take(self._news.get(timeout=seconds))
            while not self._news.empty():
                self._take(self._news.get_nowait())
        except queue.Empty:
            return None
        return view(self._pool, self._pods.values()) if self._pool else None

    def _take(self, news: tuple[str, dict[str, Any]] | StageError) -> None:
        if isinstance(news, StageError):
            raise news
        kind, event = news
        thing = event["object"]
        gone = event["type"] == "DELETED"
        if kind == "pods":
            self._pods.pop(thing["metadata"]["name"], None)
            if not gone:
                self._pods[thing["metadata"]["name"]] = thing
        elif gone:
            raise StageError(f"somebody deleted the pool {thing['metadata']['name']}")
        else:
            self._pool = thing

    def _follow(self, kind: str, command: list[str]) -> None:
        """Watch, and watch again when the API server ends it, as it does now and then."""
        failed = 0
        while not self._over.is_set():
            with subprocess.Popen(
                command, env=without_proxies(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            ) as running:
                self._running[kind] = running
                if self._over.is_set():
                    running.kill()
                assert running.stdout is not None
                assert running.stderr is not None
                for event in documents(running.stdout):
                    failed = 0
                    if event.get("type") in {"ADDED", "MODIFIED", "DELETED"}:
                        self._news.put((kind, event))
                said = running.stderr.read()
            failed += 1
            if failed >= FAILURES:
                self._news.put(StageError(f"`kubectl get --watch` ends at once: {said.strip()[-500:]}"))
                return
            self._over.wait(PAUSE_SECONDS)


def documents(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Read the events of a watch, of which kubectl writes each on a line of its own."""
    for line in lines:
        if line.strip():
            yield json.loads(line)
