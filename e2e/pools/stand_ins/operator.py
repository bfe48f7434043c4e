"""The operator as a process, that is killed and started again as a container in place is: with the same name."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from e2e.cluster.waiting import wait_for
from e2e.commands import without_proxies
from e2e.errors import StageError

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.cluster.stage import Stage

PORT = 8080
LOOKED_SECONDS = 30.0
LOOKS = 'kvfence_reconciles_total{result="done"}'
QUEUE = "kvfence_queue_length"


@dataclass
class OperatorProcess:
    """`python -m kvfence.app` in the network of the API server's node, with that cluster's administrator's rights."""

    stage: Stage
    namespace: str
    """Its own, and that of the pools."""
    log: Path
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        """Start it. It ends when this process does."""
        settings = {
            "NAMESPACE": self.namespace,
            "POD_NAME": "operator",
            "ENGINE_IMAGE_REPOSITORY": "kvfence.io/test/kvfence-engine",
            "ROUTER_IMAGE": "kvfence.io/test/router:1",
            "FRONT_IMAGE": "kvfence.io/test/router:1",
            "OPERATOR_LABELS": "app.kubernetes.io/name=kvfence-operator",
            "WATCH_NAMESPACES": self.namespace,
            "LOG_FORMAT": "text",
        }
        environment = {f"KVFENCE_{name}": value for name, value in settings.items()}
        command = ["nsenter", "--target", str(self.stage.node.pid), "--net"]  # it becomes the program: one process
        command += ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "kvfence.app"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                env=without_proxies() | environment | {"KUBECONFIG": str(self.stage.layout.kubeconfig)},
            )

    def kill(self) -> None:
        """Kill -9 it; when this returns it does nothing more."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def runs(self) -> bool:
        """Whether there is one."""
        return self._process is not None and self._process.poll() is None

    def wait_until_it_has_looked(self, pools: int) -> None:
        """Wait until it leads, has looked at so many pools at least, and nothing waits to be looked at.

        Raises:
            StageError: not in time, or it ended; the message has the end of its log.
        """

        def looked() -> bool:
            if not self.runs():
                raise StageError(f"the operator ended:\n{self.tail()}")
            counts = self._metrics()
            return counts.get(LOOKS, 0.0) >= pools and not counts[QUEUE]

        try:
            wait_for(f"the operator to look at {pools} pools", looked, LOOKED_SECONDS)
        except StageError as error:
            raise StageError(f"{error}; its log ends:\n{self.tail()}") from error

    def tail(self) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])

    def _metrics(self) -> dict[str, float]:
        proxies = urllib.request.ProxyHandler({})
        try:
            url = f"http://{self.stage.layout.node_address}:{PORT}/metrics"
            with urllib.request.build_opener(proxies).open(url, timeout=5) as answer:
                lines = answer.read().decode().splitlines()
        except OSError:  # it does not listen yet
            return {QUEUE: 0.0}
        parts = [line.rpartition(" ") for line in lines if not line.startswith("#")]
        return {name: float(value) for name, _, value in parts}
