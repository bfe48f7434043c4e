"""The CRD of pools on a cluster: there, and gone again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from e2e.errors import StageError

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
    """Return once the API takes pools.

    Raises:
        StageError: it does not in time.
    """
    begun = time.monotonic()
    while not _is_established(kubectl):  # `kubectl wait` gives up at once on one that has no conditions yet
        if time.monotonic() > begun + _SERVED_SECONDS:
            raise StageError(f"{CRD_NAME} is not served after {_SERVED_SECONDS} s")
        time.sleep(0.1)


def _is_established(kubectl: Kubectl) -> bool:
    status = kubectl.get("crd", CRD_NAME).get("status") or {}
    conditions = status.get("conditions") or ()
    return any((one["type"], one["status"]) == ("Established", "True") for one in conditions)


def apply(kubectl: Kubectl) -> None:
    """Apply it as a person does who installs the chart without it, and wait until it is served."""
    kubectl.run("apply", "--server-side", "--force-conflicts", "--filename", str(CRD))
    wait_until_served(kubectl)


def remove(kubectl: Kubectl) -> None:
    """Delete it with all pools, and wait until it is gone; fine when there is none."""
    arguments = ("delete", "crd", CRD_NAME, "--ignore-not-found", f"--timeout={_GONE_SECONDS}s")
    kubectl.run(*arguments, seconds=_GONE_SECONDS + 20)
