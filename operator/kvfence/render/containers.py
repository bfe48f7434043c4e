"""What containers of engines and routers have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvfence.render.identity import Manifest

PULL_POLICY = "IfNotPresent"
"""Where a tag is used in place of a digest, a restart on the same node at least finds the same image."""

USER = 65532
"""Who our own containers run as: nobody in particular, and not root."""


def locked_down() -> Manifest:
    """Return the securityContext of a container that is ours: no privilege, nothing to write to but its volumes."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def pod_security() -> Manifest:
    """Return the securityContext of a pod."""
    return {"seccompProfile": {"type": "RuntimeDefault"}}


def port(name: str, number: int) -> Manifest:
    """Return a port of a container. With its protocol: server-side apply tells ports apart by it."""
    return {"name": name, "containerPort": number, "protocol": "TCP"}
