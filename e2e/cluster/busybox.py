"""Small pods for tests of the cluster itself. Pure."""

from __future__ import annotations

from typing import Any

from e2e.cluster.small_images import BUSYBOX_IMAGE

PORT = 8080


def pod(
    name: str, command: list[str], *, image: str = BUSYBOX_IMAGE, labels: dict[str, str] | None = None
) -> dict[str, Any]:
    """A pod that runs one command of busybox and goes within a second when it is deleted."""
    container = {"name": "main", "image": image, "imagePullPolicy": "IfNotPresent", "command": command}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "containers": [container],
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 1,
        },
    }


def web_server(name: str, text: str, labels: dict[str, str]) -> dict[str, Any]:
    """A pod that answers `text` to HTTP on `PORT`, and is Ready when it does."""
    serve = f"mkdir /web && echo {text} > /web/index.html && exec httpd -f -p {PORT} -h /web"
    made = pod(name, ["/bin/sh", "-c", serve], labels=labels)
    made["spec"]["containers"][0]["readinessProbe"] = {"tcpSocket": {"port": PORT}, "periodSeconds": 1}
    return made


def service(name: str, selector: dict[str, str]) -> dict[str, Any]:
    """A Service on port 80 in front of web servers."""
    ports = [{"port": 80, "targetPort": PORT}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": selector, "ports": ports},
    }
