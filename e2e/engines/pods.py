"""Kubernetes manifests of the stage's SGLang servers. Pure: the same command and settings as for a process on
loopback.
"""

from __future__ import annotations

from typing import Any

from e2e.engines import layers
from e2e.engines.servers import Ports, Server, launch

PORTS = Ports()
CONTAINER = "engine"
ROLE_LABEL = "kvfence.io/stage-role"
STOP_SECONDS = 5


def image(server: Server) -> str:
    """Return the reference under which the stage imports the image for this server's version."""
    return layers.IMAGES[server.version]


def pod(server: Server, namespace: str) -> dict[str, Any]:
    """Return the manifest of a Pod that runs `server`; it is Ready when a request made up by `/health` came back.

    Args:
        server: its name becomes the pod's.
        namespace: where the pod is to be.
    """
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": server.name,
            "namespace": namespace,
            "labels": {ROLE_LABEL: server.role.value},
        },
        "spec": {
            "automountServiceAccountToken": False,  # an engine never speaks to the API server
            "enableServiceLinks": False,  # else each Service puts variables into the engine's environment
            "restartPolicy": "Never",  # a server that dies on the stage is to be seen dead
            "terminationGracePeriodSeconds": STOP_SECONDS,
            "containers": [_container(server)],
        },
    }


def _container(server: Server) -> dict[str, Any]:
    # The kubelet fills $(POD_IP) in, as long as POD_IP stands before it in the list.
    command = launch(server, layers.place(server.version, "$(POD_IP)"), PORTS)
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    return {
        "name": CONTAINER,
        "image": image(server),
        "imagePullPolicy": "IfNotPresent",  # the stage imports its images; there is no registry to ask
        "command": list(command.argv),
        "env": [address, *({"name": name, "value": value} for name, value in command.env.items())],
        "ports": [
            {"name": "http", "containerPort": PORTS.http},
            {"name": "bootstrap", "containerPort": PORTS.bootstrap},
        ],
        "readinessProbe": {
            "httpGet": {"path": "/health", "port": "http"},
            "periodSeconds": 2,
            "timeoutSeconds": 10,  # the answer takes a second by itself, and more while other servers start
            "failureThreshold": 5,
        },
    }
