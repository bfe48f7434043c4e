"""Have the engine images on the stage: the large one is imported once, what changes lies on it as thin layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from e2e.cluster import packages
from e2e.cluster.images import Changed, Image
from e2e.engines import environment, layers

if TYPE_CHECKING:
    from e2e.cluster.image_store import ImageStore

BASE = f"kvfence.io/stage/sglang-base:{environment.VERSION}"
WITHOUT_SGLANG = f"kvfence.io/stage/python:{environment.PYTHON}"
"""An image with a `python3` that has no packages: what a user gets who names the wrong image."""


def build() -> None:
    """Build the layers of all engine images; what is there already is not built again."""
    packages.install(packages.IMAGE_PACKAGES)
    for version in layers.IMAGES:
        layers.layers(version)


def load(store: ImageStore) -> None:
    """Have the engine images of all versions in `store`; builds their layers when that has not been done."""
    packages.install(packages.IMAGE_PACKAGES)
    store.load(Image(BASE, (layers.debian_layer(), layers.engine_layer())))
    for version, name in layers.IMAGES.items():
        older = [] if version == environment.VERSION else [layers.older_layer(version)]
        changed = Changed(environment=layers.settings(version))
        store.load_thin(name, BASE, *older, layers.stage_layer(), changed=changed)


def load_python(store: ImageStore) -> str:
    """Have the image without SGLang in `store`, and return its name."""
    packages.install(packages.IMAGE_PACKAGES)
    store.load(Image(WITHOUT_SGLANG, (layers.debian_layer(), layers.python3_layer())))
    return WITHOUT_SGLANG
