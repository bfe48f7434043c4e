"""Where the demo plays: on the stage of this repository, or on a cluster that is there."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from e2e.chart.helm import Helm
from e2e.cluster import clients, stage
from e2e.cluster.kubectl import Kubectl
from e2e.cluster.layout import STAGE, Switches
from e2e.commands import run
from e2e.engines import images as engine_images
from e2e.errors import StageError
from e2e.product import images as product_images

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

VARIABLES = {
    "OPERATOR_IMAGE": "the operator (operator/Dockerfile)",
    "KVFENCE_ENGINE_IMAGE": "what is injected into engines (engine_image/Dockerfile); its tag is its version",
    "ROUTER_IMAGE": "router and proxy (operator/router.Dockerfile)",
}
"""Images that a cluster can pull, for installing the chart."""
SGLANG_VARIABLE = "SGLANG_IMAGE"
"""SGLang for CPUs with the stage's model in /models/tiny; without it, what the pool's file names."""


@dataclass(frozen=True)
class Images:
    """What the cluster runs."""

    operator: str
    engine: str
    """What is injected into engines."""
    router: str
    operator_digest: str = ""
    """Where an image is made anew under the same name: what tells one from another."""


@dataclass(frozen=True)
class Ground:
    """A cluster, and how to talk to it."""

    kubectl: Kubectl
    helm: Helm
    images: Images | None
    """None where nothing has been said about images, which is enough for a cluster that has kvfence."""
    words: str
    """What it is, for people."""
    sglang: str
    """The engines' image; empty for the one that the pool's file names."""
    typed: str
    """How a person calls kubectl for it."""
    shell: str = ""
    """What a person has to type before."""


def on_stage(home: Path) -> Ground:
    """Have the stage up, with the images of this checkout on it.

    Raises:
        StageError: it does not come up.
    """
    engine_images.build()
    product_images.build()
    there = stage.running(STAGE)
    up = stage.up(STAGE, Switches(dns=True, network_policy=True, audit=bool(there and there.switches.audit)))
    engine_images.load(up.images)
    names = product_images.load(up.images)
    images = Images(names.operator, names.engine, names.router, up.images.digest(names.operator))
    shell = f"export KUBECONFIG={up.layout.kubeconfig} PATH=$PATH:{up.parts.clients}"
    return Ground(up.kubectl, Helm.of(up, home), images, "the stage, a local one-node cluster", "", "kubectl", shell)


def in_context(name: str, home: Path) -> Ground:
    """Use the cluster of a context of this shell's kubeconfig.

    Args:
        name: of the context.
        home: a folder for a kubeconfig with this context alone, and for Helm's own files.

    Raises:
        StageError: there is no such context.
    """
    programs = clients.folder()
    view = ("config", "view", "--minify", "--flatten", "--raw", "--context", name)
    kubeconfig = home / "kubeconfig"
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_text(run(str(programs / "kubectl"), *view))
    return Ground(
        Kubectl(programs / "kubectl", kubeconfig),
        Helm(programs / "helm", kubeconfig, home),
        named_images(os.environ),
        f"the cluster of context {name}",
        os.environ.get(SGLANG_VARIABLE, ""),
        f"kubectl --context {shlex.quote(name)}",
    )


def named_images(variables: Mapping[str, str]) -> Images | None:
    """Return the images that the variables name; none when they name none.

    Raises:
        StageError: some are named and some are not, or a name is not enough.
    """
    given = {name: variables.get(name, "") for name in VARIABLES}
    if not any(given.values()):
        return None
    if missing := [f"{name}, {VARIABLES[name]}" for name, value in given.items() if not value]:
        raise StageError(f"name all images or none; missing: {'; '.join(missing)}")
    for name in VARIABLES:
        split(given[name], name)
    return Images(*(given[name] for name in VARIABLES))


def split(image: str, variable: str = "an image") -> tuple[str, str]:
    """Return repository and tag.

    Raises:
        StageError: there is no tag.
    """
    repository, _, tag = image.rpartition(":")
    if not repository or "/" in tag or "@" in repository:
        raise StageError(f"{variable} is {image!r}: it has to be REPOSITORY:TAG")
    return repository, tag


def without_images() -> StageError:
    """What to do when kvfence is to be installed on a cluster that is there, and nobody has said from which images."""
    lines = [f"  {name:<21} {what}" for name, what in VARIABLES.items()]
    return StageError(
        "this cluster has no kvfence yet. To install it, name images that it can pull, each as REPOSITORY:TAG:\n"
        + "\n".join([*lines, f"  {SGLANG_VARIABLE:<21} SGLang for CPUs, with the stage's model in /models/tiny"])
    )
