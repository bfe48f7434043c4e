"""Have kvfence's own images on the stage: what is edited lies on them as thin layers, in a pod a second later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from e2e.cluster import packages, small_images
from e2e.cluster.images import DEFAULT_PATH, Changed, Image
from e2e.engines import layers as engine_layers
from e2e.product import layers
from kvfence import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.cluster.image_store import ImageStore

USER = "65532:65532"
OPERATOR = Changed(
    environment=(f"PYTHONPATH=/{layers.OPERATOR_FOLDER}", "PYTHONUNBUFFERED=1"),
    user=USER,
    entrypoint=("python3", "-m", "kvfence.app"),
)
INJECTION = Changed(user=USER, entrypoint=("cp", "-R", f"/{layers.INJECTION_FOLDER}/."), command=("/kvfence/",))
ROUTER = Changed(
    environment=(
        f"PATH=/{layers.ROUTER_FOLDER}/bin:{DEFAULT_PATH}",
        f"PYTHONPATH=/{layers.ROUTER_FOLDER}",
        "PYTHONUNBUFFERED=1",
    ),
    user=USER,
    command=("smg", "--help"),
)
"""Each as the image's Dockerfile says; `e2e/images` compares them."""


@dataclass(frozen=True)
class ProductImages:
    """The names under which a pod finds them."""

    operator: str = f"kvfence.io/stage/operator:{__version__}"
    engine: str = f"kvfence.io/stage/kvfence-engine:{__version__}"
    """What is injected into engines."""
    router: str = f"kvfence.io/stage/router:{__version__}"


def build() -> None:
    """Build the layers that change seldom; what is there already is not built again."""
    packages.install(packages.IMAGE_PACKAGES)
    for build_one in (layers.operator_packages, layers.router_packages, layers.router_debian):
        build_one()


def load(store: ImageStore) -> ProductImages:
    """Have the images of this checkout in `store`; builds their layers when that has not been done."""
    packages.install(packages.IMAGE_PACKAGES)
    names = ProductImages()
    python = (engine_layers.debian_layer(), engine_layers.python3_layer())
    _load(store, names.operator, (*python, layers.operator_packages()), layers.operator(), OPERATOR)
    nginx = (layers.router_debian(),)
    _load(store, names.router, (*nginx, layers.router_packages()), layers.router_program(), ROUTER)
    busybox = small_images.busybox()
    store.load(busybox)
    store.load_thin(names.engine, busybox.name, layers.injection(), changed=INJECTION)
    return names


def _load(store: ImageStore, name: str, below: tuple[Path, ...], top: Path, changed: Changed) -> None:
    base = f"{name}-base"
    store.load(Image(base, below))
    store.load_thin(name, base, top, changed=changed)
