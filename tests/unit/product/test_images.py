"""What the stage runs as kvfence's images is what the Dockerfiles make of the same files."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import kvfence
from e2e.cluster.images import DEFAULT_PATH, Changed
from e2e.product import images, layers

DOCKERFILES = {
    "operator/Dockerfile": (images.OPERATOR, [f"/{layers.OPERATOR_FOLDER}", "/crds"]),
    "operator/router.Dockerfile": (images.ROUTER, [f"/{layers.ROUTER_FOLDER}"]),
    "engine_image/Dockerfile": (images.INJECTION, [f"/{layers.INJECTION_FOLDER}"]),
}
EVERY_ONE = [*DOCKERFILES, "engine_image/ready.Dockerfile"]


def instructions(text: str) -> list[tuple[str, str]]:
    """The lines of a Dockerfile that do something, as name and rest."""
    joined = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    return [(name, rest) for line in joined.splitlines() if line for name, _, rest in [line.partition(" ")]]


def last_stage(text: str) -> list[tuple[str, str]]:
    """What makes the image itself, and not what it is made from."""
    found = instructions(text)
    start = max(number for number, (name, _) in enumerate(found) if name == "FROM")
    return found[start:]


def settings(stage: list[tuple[str, str]]) -> Changed:
    """What the instructions of a stage set."""
    of: dict[str, Any] = {"ENTRYPOINT": "[]", "CMD": "[]", "USER": ""} | dict(stage)
    environment = tuple(one for name, rest in stage if name == "ENV" for one in rest.split())
    return Changed(environment, of["USER"], tuple(json.loads(of["ENTRYPOINT"])), tuple(json.loads(of["CMD"])))


@pytest.mark.parametrize("name", DOCKERFILES)
def test_an_image_of_the_stage_has_the_settings_and_the_folders_of_its_dockerfile(name: str) -> None:
    wanted, folders = DOCKERFILES[name]
    stage = last_stage((layers.CHECKOUT / name).read_text())
    assert settings(stage) == wanted
    assert [rest.split()[-1] for command, rest in stage if command == "COPY"] == folders


@pytest.mark.parametrize("name", EVERY_ONE)
def test_a_dockerfile_names_no_registry_and_no_moving_tag(name: str) -> None:
    text = (layers.CHECKOUT / name).read_text()
    for argument in (rest for command, rest in instructions(text) if command == "ARG" and "=" in rest):
        image = argument.split("=", 1)[1]
        assert re.fullmatch(r"[a-z]+:[\w.-]+", image), argument
        assert not image.endswith(":latest")
    stages = [rest for command, rest in instructions(text) if command == "FROM"]
    assert stages
    assert all(rest.startswith("${") for rest in stages), "a base comes by build argument"


@pytest.mark.parametrize("name", DOCKERFILES)
def test_what_is_installed_from_outside_is_installed_by_hash(name: str) -> None:
    runs = [
        one
        for command, rest in instructions((layers.CHECKOUT / name).read_text())
        if command == "RUN"
        for one in rest.split("&&")
    ]
    installs = [one for one in runs if "pip install" in one]
    assert all("--require-hashes" in one or "--no-index" in one for one in installs)
    assert bool(installs) is (name != "engine_image/Dockerfile")


def test_a_ready_made_engine_has_kvfence_where_an_init_container_would_bring_it() -> None:
    stage = last_stage((layers.CHECKOUT / "engine_image/ready.Dockerfile").read_text())
    assert ("COPY", f"--from=engine /{layers.INJECTION_FOLDER} /kvfence") in stage
    assert settings(stage) == Changed(entrypoint=("python3", "/kvfence/kvfence_engine"))


def test_the_names_have_the_version_that_is_built() -> None:
    names = vars(images.ProductImages()).values()
    assert {name.rpartition(":")[2] for name in names} == {kvfence.__version__}
    assert DEFAULT_PATH in images.ROUTER.environment[0]
