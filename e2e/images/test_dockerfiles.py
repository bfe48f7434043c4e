"""Each Dockerfile is built for real, on bases of the stage, and what it gives is run once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import kvfence
from e2e import progress
from e2e.cluster import packages, small_images
from e2e.cluster.images import Changed, Image
from e2e.conftest import Aloud
from e2e.engines import layers as engine_layers
from e2e.errors import StageError
from e2e.images.builder import Builder
from e2e.product import images, layers

LOOK = """
import importlib.metadata, os
import kopf, kvfence.app
print(os.getuid(), importlib.metadata.version("kvfence"), os.listdir("/crds"))
"""
PYTHON_PACKAGES = ("python3.11", "python3", "python3-pip", "ca-certificates")
PYTHON = "kvfence.io/stage/python-with-pip:1"
"""Stands for python:3.12-slim: Debian with Python and pip."""


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory, aloud: Aloud) -> Iterator[Builder]:
    """With the bases in its store."""
    busybox = {"busybox-static": packages.NODE_PACKAGES["busybox-static"]}
    packages.install(packages.IMAGE_PACKAGES | packages.BUILDING_PACKAGES | busybox)
    made = Builder(tmp_path_factory.mktemp("buildah"))
    try:
        with aloud():
            python = engine_layers.debian("layer-debian-pip", PYTHON_PACKAGES, "the bases of images")
            with progress.step("taking the bases of the images", "about 10 s"):
                made.take(Image(PYTHON, (python,)))
                made.take(small_images.busybox())
        yield made
    finally:
        made.leave()


@pytest.fixture(scope="module")
def engine(builder: Builder, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The injection image."""
    context = tmp_path_factory.mktemp("engine")
    layers.build_wheel(layers.CHECKOUT / "engine_image", context / "dist")
    bases = {"BUILD": PYTHON, "BASE": small_images.BUSYBOX_IMAGE}
    return builder.build("localhost/engine:1", layers.CHECKOUT / "engine_image/Dockerfile", context, bases)


def has(settings: Changed, wanted: Changed) -> bool:
    """Whether an image is run as the stage's is; its base may give it more variables."""
    environment = tuple(one for one in settings.environment if one in wanted.environment)
    return set(environment) == set(wanted.environment) and settings == Changed(
        settings.environment, wanted.user, wanted.entrypoint, wanted.command
    )


def test_the_injection_image_copies_what_an_engine_runs(builder: Builder, engine: str, tmp_path: Path) -> None:
    settings = builder.settings(engine)
    assert has(settings, images.INJECTION)
    tmp_path.chmod(0o777)
    builder.run(engine, *settings.entrypoint, *settings.command, mounts={"/kvfence": tmp_path})
    assert {path.name for path in tmp_path.iterdir()} == {
        "kvfence_engine",
        f"kvfence_engine-{kvfence.__version__}.dist-info",
    }
    (program,) = tmp_path.glob("kvfence_engine/__main__.py")
    assert (program.stat().st_uid, program.stat().st_mode & 0o777) == (65532, 0o644)


def test_a_ready_made_engine_starts_the_launcher_of_the_image_it_was_made_of(builder: Builder, engine: str) -> None:
    dockerfile = layers.CHECKOUT / "engine_image/ready.Dockerfile"
    ready = builder.build("localhost/ready:1", dockerfile, dockerfile.parent, {"BASE": PYTHON, "ENGINE": engine})
    settings = builder.settings(ready)
    assert settings.user == "", "that of the user's image"
    own = ("--pool", "pool", "--pod", "pod", "--keys", "/keys", "--listen", "127.0.0.1", "--port", "0")
    with pytest.raises(StageError, match="there is no SGLang in this image: /usr/bin/python3 does not find it"):
        builder.run(ready, *settings.entrypoint, *own)


def test_the_operator_is_installed_with_what_it_needs(builder: Builder, tmp_path: Path) -> None:
    layers.build_wheel(layers.CHECKOUT, tmp_path / "dist")
    shutil.copy(layers.OPERATOR_LOCK, tmp_path)
    shutil.copytree(layers.CHECKOUT / "crds", tmp_path / "crds")
    dockerfile = layers.CHECKOUT / "operator/Dockerfile"
    operator = builder.build("localhost/operator:1", dockerfile, tmp_path, {"BASE": PYTHON})
    assert has(builder.settings(operator), images.OPERATOR)
    said = builder.run(operator, "python3", "-c", LOOK)
    assert said == f"65532 {kvfence.__version__} ['kvfence.io_inferencepools.yaml']\n"


def test_the_router_has_nginx_and_smg(builder: Builder) -> None:
    dockerfile = layers.CHECKOUT / "operator/router.Dockerfile"
    router = builder.build("localhost/router:1", dockerfile, dockerfile.parent, {"BASE": PYTHON})
    assert has(builder.settings(router), images.ROUTER)
    user, nginx, *usage = builder.run(router, "/bin/sh", "-c", "id -u; nginx -v 2>&1; smg launch --help").splitlines()
    assert (user, nginx) == ("65532", "nginx version: nginx/1.22.1")
    assert "--discovery-provider" in "\n".join(usage)
