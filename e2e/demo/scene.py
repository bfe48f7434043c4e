"""Which pool the demo shows, and where."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from e2e.chart.crd import CRD_NAME
from e2e.errors import StageError

if TYPE_CHECKING:
    from e2e.cluster.kubectl import Kubectl

CHECKOUT = Path(__file__).resolve().parents[2]
EXAMPLE = CHECKOUT / "examples" / "01-first-pool" / "pool.yaml"


@dataclass(frozen=True)
class Scene:
    """A pool, and where it goes."""

    file: Path
    manifest: dict[str, Any]
    namespace: str
    down: str
    """The command that removes all of it."""
    operator: str = ""
    """The namespace of the operator, once that is known."""

    @property
    def pool(self) -> str:
        """Its name, and its Service's."""
        return str(self.manifest["metadata"]["name"])

    @property
    def model(self) -> str:
        """What clients call the model."""
        return str(self.manifest["spec"]["model"]["servedName"])

    @property
    def shown(self) -> str:
        """Its file, as a person at the top of the checkout calls it."""
        return str(self.file.relative_to(CHECKOUT) if self.file.is_relative_to(CHECKOUT) else self.file)


def read(file: Path, namespace: str, down: str, sglang: str = "") -> Scene:
    """Read a pool from its file.

    Args:
        file: with one InferencePool.
        namespace: of the demo.
        down: see `Scene`.
        sglang: the engines' image, instead of the file's.

    Raises:
        StageError: there is no pool in it.
    """
    try:
        manifest = yaml.safe_load(file.read_text())
        if sglang:
            manifest["spec"]["engine"]["sglang"]["image"] = sglang
        scene = Scene(file, manifest, namespace, down)
        assert scene.pool
        assert scene.model
    except (OSError, yaml.YAMLError, TypeError, KeyError, AssertionError) as error:
        raise StageError(f"{file} is no file with one InferencePool: {type(error).__name__}: {error}") from error
    return scene


class Applied(StrEnum):
    """What applying a pool has changed."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


def apply(kubectl: Kubectl, scene: Scene) -> Applied:
    """Apply it, as a person does with `kubectl apply`.

    Raises:
        StageError: the API server refuses it.
    """
    before = _generation(kubectl, scene)
    arguments = ("apply", "--namespace", scene.namespace, "--filename", "-")
    kubectl.run(*arguments, given=json.dumps(scene.manifest))
    if not before:
        return Applied.CREATED
    # Not what kubectl says: to it a list in which the API server has filled in defaults is changed each time.
    return Applied.UNCHANGED if _generation(kubectl, scene) == before else Applied.CHANGED


def _generation(kubectl: Kubectl, scene: Scene) -> str:
    path = "--output=jsonpath={.metadata.uid}/{.metadata.generation}"
    return kubectl.run("get", CRD_NAME, scene.pool, "--namespace", scene.namespace, "--ignore-not-found", path).strip()
