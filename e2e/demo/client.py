"""A pod of the cluster that asks the pool's Service, as any client does: the same on the stage and on any cluster."""

from __future__ import annotations

import json
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from e2e.commands import without_proxies
from e2e.errors import StageError

if TYPE_CHECKING:
    from types import TracebackType

    from e2e.cluster.kubectl import Kubectl

NAME = "client"
SCRIPT = Path(__file__).with_name("ask.py")
FOLDER = "/demo"
READY_SECONDS = 120
EVERY_SECONDS = 1.0


@dataclass(frozen=True)
class Said:
    """What came of one question."""

    status: int | None
    """HTTP status; none when there was no answer."""
    body: str
    why: str
    """Why there was no answer."""
    seconds: float
    ended: float
    """By the clock of the client's node, in seconds since 1970."""

    @property
    def answered(self) -> bool:
        """Whether the model has answered."""
        return self.status == 200


def manifests(namespace: str, service: str, image: str) -> list[dict[str, Any]]:
    """Return the pod and its script.

    Args:
        namespace: of the pool.
        service: whom it asks.
        image: any with python3.
    """
    script = {"apiVersion": "v1", "kind": "ConfigMap", "data": {SCRIPT.name: SCRIPT.read_text()}}
    container = {
        "name": "python",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "infinity"],
        "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}},  # else engines that load leave it no time
        "env": [{"name": "SERVICE", "value": service}],
        "volumeMounts": [{"name": "demo", "mountPath": FOLDER, "readOnly": True}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    spec = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 1,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "demo", "configMap": {"name": NAME}}],
    }
    meta = {"name": NAME, "namespace": namespace}
    return [script | {"metadata": meta}, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}]


def start(kubectl: Kubectl, namespace: str, service: str, image: str) -> None:
    """Have the client in the cluster.

    Raises:
        StageError: it does not start; the message says why.
    """
    where = ("--namespace", namespace)
    path = "--output=jsonpath={.spec.containers[0].image} {.spec.containers[0].env[0].value} {.status.phase}"
    there = kubectl.try_run("get", "pod", NAME, *where, path)
    if there.returncode == 0 and there.stdout != f"{image} {service} Running":
        kubectl.run("delete", "pod", NAME, *where)
    kubectl.apply(manifests(namespace, service, image))
    wait = ("wait", "--for=condition=Ready", f"pod/{NAME}", *where, f"--timeout={READY_SECONDS}s")
    if kubectl.try_run(*wait, seconds=READY_SECONDS + 10).returncode != 0:
        state = kubectl.try_run("get", "pod", NAME, *where, "--output=jsonpath={.status.containerStatuses[*].state}")
        raise StageError(f"the client's pod (image {image}) does not start: {state.stdout or state.stderr}")


class Client:
    """Asks through one `kubectl exec`, so that a question costs a millisecond. Use it in a `with`, which ends it."""

    def __init__(self, kubectl: Kubectl, namespace: str) -> None:
        self._command = [
            *(str(kubectl.program), "--kubeconfig", str(kubectl.kubeconfig), "exec", "--stdin"),
            *("--namespace", namespace, NAME, "--", "python3", f"{FOLDER}/{SCRIPT.name}"),
        ]
        self._running: subprocess.Popen[str] | None = None
        self._turn = threading.Lock()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._running:
            self._running.kill()
            self._running.wait()

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Said:
        """Ask the Service, and wait for all of the answer.

        Raises:
            StageError: the question could not be brought into the cluster.
        """
        question = json.dumps({"path": path, "body": None if body is None else json.dumps(body)})
        with self._turn:
            for last in (False, True):  # once more: a connection that was idle may have been cut
                line = self._exchange(question)
                if line:
                    return Said(**json.loads(line))
                if last:
                    raise StageError(f"`kubectl exec` into the pod {NAME} does not work: {self._last_words()}")
        raise AssertionError

    def _exchange(self, question: str) -> str:
        if self._running is None or self._running.poll() is not None:
            self._running = subprocess.Popen(
                self._command,
                env=without_proxies(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        assert self._running.stdin is not None
        assert self._running.stdout is not None
        try:
            self._running.stdin.write(question + "\n")
            self._running.stdin.flush()
            return self._running.stdout.readline()
        except BrokenPipeError:
            return ""

    def _last_words(self) -> str:
        assert self._running is not None
        self._running.kill()
        return self._running.communicate()[1].strip()[-500:]


class Knocking:
    """Asks for a completion every second, until somebody is answered or `stop` is called."""

    def __init__(self, client: Client, body: dict[str, Any]) -> None:
        self.said: list[Said] = []
        self.error: StageError | None = None
        self._client, self._body = client, body
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._knock, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self._over.set()
        self._thread.join()

    @property
    def is_over(self) -> bool:
        """Whether somebody was answered, or nothing can be asked."""
        return not self._thread.is_alive()

    def _knock(self) -> None:
        try:
            while not self._over.is_set():
                said = self._client.ask("/v1/completions", self._body)
                self.said.append(said)
                if said.answered:
                    return
                self._over.wait(EVERY_SECONDS)
        except StageError as error:
            self.error = error
