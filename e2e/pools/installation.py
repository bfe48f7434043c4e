"""The operator as users install it: its chart, with the real `helm`, in a namespace of its own."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from e2e import progress
from e2e.chart import crd
from e2e.chart.helm import Helm
from e2e.cluster.waiting import wait_for
from e2e.engines import images as engine_images
from e2e.errors import StageError
from e2e.pools import inside, neighbours
from e2e.pools.asking import Place
from e2e.product import images as product_images

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.cluster.stage import Stage
    from e2e.product.images import ProductImages

NAME = "kvfence-operator"
PODS = f"--selector=app.kubernetes.io/name={NAME}"
METRICS_PORT = 8080
READY_SECONDS = 180.0
GONE_SECONDS = 60.0


@dataclass(frozen=True)
class Installation:
    """An operator on the stage."""

    stage: Stage
    namespace: str
    """Its own."""

    @property
    def user(self) -> str:
        """As whom it talks to the API server."""
        return f"system:serviceaccount:{self.namespace}:{NAME}"

    def pods(self) -> list[dict[str, Any]]:
        """Its pods, those that end too."""
        found: list[dict[str, Any]] = self.stage.kubectl.get("pods", "--namespace", self.namespace, PODS)["items"]
        return found

    def scale(self, replicas: int) -> None:
        """Have so many operators, and wait until it is so: 0 means that none runs any more.

        Raises:
            StageError: it took too long; the message has the log.
        """
        kubectl, where = self.stage.kubectl, ("--namespace", self.namespace)
        kubectl.run("scale", "deployment", NAME, f"--replicas={replicas}", *where)
        if replicas == 0:
            wait_for("the operator to be gone", lambda: not self.pods(), GONE_SECONDS, every=0.3)
            return
        self._wait_until_ready()

    def kill(self) -> None:
        """Kill -9 the operator's process; the kubelet starts its container again."""
        killed = 0
        for pod in self.pods():
            for status in pod["status"]["containerStatuses"]:
                for pid in inside.processes(status["containerID"].partition("//")[2]):
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
        if not killed:
            raise StageError("no process of the operator runs, so none was killed")

    def restarts(self) -> int:
        """How often its containers were started again."""
        return sum(status["restartCount"] for pod in self.pods() for status in pod["status"]["containerStatuses"])

    def metrics(self) -> dict[str, float]:
        """What its one pod counts, by name with labels as /metrics writes it."""
        (pod,) = self.pods()
        text = Place("operator", pod["status"]["podIP"], METRICS_PORT).ask("/metrics", seconds=10.0).text
        lines = [line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#")]
        return {name: float(value) for name, _, value in lines}

    def logs(self) -> str:
        """What its pods wrote, also before a container was started again."""
        where = ("--namespace", self.namespace, PODS, "--tail=-1")
        runs = [self.stage.kubectl.try_run("logs", *where, *more).stdout for more in (["--previous"], [])]
        return "".join(runs)

    def _wait_until_ready(self) -> None:
        arguments = ("rollout", "status", f"deployment/{NAME}", "--namespace", self.namespace)
        ran = self.stage.kubectl.try_run(*arguments, f"--timeout={READY_SECONDS:.0f}s", seconds=READY_SECONDS + 10)
        if ran.returncode != 0:
            states = [pod["status"].get("containerStatuses") for pod in self.pods()]
            raise StageError(f"the operator is not ready: {ran.stderr}\n{json.dumps(states)}\n{self.logs()[-4000:]}")


@contextmanager
def installed(stage: Stage, namespace: str, watch: tuple[str, ...], *settings: str) -> Iterator[Installation]:
    """Install the chart and wait for the operator; uninstall it at the end, and delete its namespace.

    Args:
        stage: where.
        namespace: of the operator; it is made.
        watch: the namespaces of its pools; they are there already, and no other operator writes there meanwhile.
        settings: more arguments for `helm`, such as `--set=resyncSeconds=10`.

    Raises:
        StageError: it did not get ready.
    """
    names = product_images.load(stage.images)
    engine_images.load(stage.images)
    kubectl = stage.kubectl
    # Not by the chart: a release owns the CRD, and another release has to be able to stand beside it.
    crd.apply(kubectl)
    kubectl.run("create", "namespace", namespace)
    with tempfile.TemporaryDirectory() as home, neighbours.kept_off(kubectl, namespace, watch):
        helm, operator = Helm.of(stage, Path(home)), Installation(stage, namespace)
        try:
            with progress.step("installing the operator", "about 5 s"):
                helm.install(namespace, *_values(names, watch), *settings)
                operator._wait_until_ready()
            yield operator
        finally:
            helm.uninstall(namespace)
            kubectl.try_run("delete", "namespace", namespace, "--wait=false")


def _values(names: ProductImages, watch: tuple[str, ...]) -> list[str]:
    operator, router = (name.rpartition(":") for name in (names.operator, names.router))
    engine = names.engine.rpartition(":")
    return [
        "--set=crds.enabled=false",
        f"--set=watchNamespaces={{{','.join(watch)}}}",
        f"--set=image.repository={operator[0]},image.tag={operator[2]}",
        f"--set=routerImage.repository={router[0]},routerImage.tag={router[2]}",
        f"--set=engineImage.repository={engine[0]},engineImage.pluginVersion={engine[2]}",
    ]
