"""The CRD of pools on a cluster: there, and gone again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from e2e.cluster.kubectl import Kubectl

CRD = Path(__file__).resolve().parents[2] / "crds" / "kvfence.io_inferencepools.yaml"
CRD_NAME = "inferencepools.kvfence.io"

_SERVED_SECONDS = 30
_GONE_SECONDS = 180
"""Kubernetes looks for a minute whether a CRD's objects are gone, gives up and begins again: twice that, and more."""


def is_there(kubectl: Kubectl) -> bool:
    """Whether anybody has applied it."""
    return CRD_NAME in kubectl.run("get", "crd", "--output", "name")


def wait_until_served(kubectl: Kubectl) -> None:
    """Return once the API takes pools."""
    kubectl.run("wait", "--for=condition=Established", f"crd/{CRD_NAME}", f"--timeout={_SERVED_SECONDS}s")


def apply(kubectl: Kubectl) -> None:
    """Apply it as a person does who installs the chart without it, and wait until it is served."""
    kubectl.run("apply", "--server-side", "--force-conflicts", "--filename", str(CRD))
    wait_until_served(kubectl)


def remove(kubectl: Kubectl) -> None:
    """Delete it with all pools, and wait until it is gone; fine when there is none."""
    arguments = ("delete", "crd", CRD_NAME, "--ignore-not-found", f"--timeout={_GONE_SECONDS}s")
    kubectl.run(*arguments, seconds=_GONE_SECONDS + 20)
