"""The layers of kvfence's own images on the stage.

What the images hold is what their Dockerfiles put into them: wheels of this checkout, and packages by the same locks.
What changes seldom, packages and Debian, is built once and kept in the cache; a wheel is built anew after each edit.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

from e2e import cache, progress
from e2e.commands import run
from e2e.engines import environment, layers

CHECKOUT = Path(__file__).resolve().parents[2]
OPERATOR_LOCK = CHECKOUT / "requirements.lock"
ROUTER_LOCK = CHECKOUT / "operator" / "router-requirements.txt"

OPERATOR_FOLDER = "opt/kvfence"
ROUTER_FOLDER = "opt/smg"
INJECTION_FOLDER = "kvfence-engine"
ROUTER_PACKAGES = ("python3.11", "python3-minimal", "nginx-light", "ca-certificates")

SMG = """#!/usr/bin/python3
import sys

from smg.cli import main

sys.exit(main())
"""
"""The program that an installer makes of smg's entry point, for the image's own Python."""


def operator_packages() -> Path:
    """Return what the operator needs, as its lock says (20 s)."""
    return _packages("layer-operator-packages", OPERATOR_LOCK, OPERATOR_FOLDER, "the operator's packages")


def router_packages() -> Path:
    """Return smg with what it needs, as the router's lock says (10 s, 0.2 GB)."""
    return _packages("layer-router-packages", ROUTER_LOCK, ROUTER_FOLDER, "smg")


def router_debian() -> Path:
    """Return a root file system with nginx and Python (1 min, 0.2 GB)."""
    return layers.debian("layer-debian-router", ROUTER_PACKAGES, "the router's image")


def operator() -> Path:
    """Return the operator and the CRDs as they are in this checkout (1 s after an edit)."""
    crds = CHECKOUT / "crds"

    def build(folder: Path) -> None:
        _unpack(CHECKOUT, folder, OPERATOR_FOLDER)
        (folder / "crds").mkdir()
        for path in crds.iterdir():
            (folder / "crds" / path.name).write_bytes(path.read_bytes())
        layers.pack(folder, "opt", "crds")

    inputs = _project(CHECKOUT, "operator/kvfence") | {"crds": crds, "recipe": _recipe(OPERATOR_FOLDER)}
    return cache.built("layer-operator", inputs, build) / layers.TAR


def injection() -> Path:
    """Return kvfence-engine as it is in this checkout, as an init container copies it (1 s after an edit)."""
    project = CHECKOUT / "engine_image"

    def build(folder: Path) -> None:
        _unpack(project, folder, INJECTION_FOLDER)
        layers.pack(folder, INJECTION_FOLDER)

    inputs = _project(project, "kvfence_engine") | {"recipe": _recipe(INJECTION_FOLDER)}
    return cache.built("layer-injection", inputs, build) / layers.TAR


def router_program() -> Path:
    """Return smg's program."""

    def build(folder: Path) -> None:
        program = folder / ROUTER_FOLDER / "bin" / "smg"
        program.parent.mkdir(parents=True)
        program.write_text(SMG)
        program.chmod(0o755)
        layers.pack(folder, "opt")

    return cache.built("layer-router", {"program": SMG, "recipe": _recipe(ROUTER_FOLDER)}, build) / layers.TAR


def build_wheel(project: Path, folder: Path) -> Path:
    """Build a distribution as it is shipped into an empty folder, and return its wheel."""
    command = (sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder))
    run(*command, folder=project, shown=f"building the wheel of {project.name}")
    (wheel,) = folder.glob("*.whl")
    return wheel


def _unpack(project: Path, folder: Path, at: str) -> None:
    wheel = build_wheel(project, folder / "wheel")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(folder / at)
    wheel.unlink()
    wheel.parent.rmdir()


def _packages(kind: str, lock: Path, at: str, what: str) -> Path:
    def build(folder: Path) -> None:
        with progress.step(f"installing {what} for an image"):
            target = ("--target", str(folder / at), "--no-deps", "--only-binary", ":all:")
            environment.install(environment.PYTHON, *target, "--require-hashes", "-r", str(lock))
        layers.pack(folder, "opt")

    inputs: dict[str, str | Path] = {"lock": lock, "recipe": _recipe(at)}
    return cache.built(kind, inputs, build) / layers.TAR


def _project(project: Path, package: str) -> dict[str, str | Path]:
    """What a wheel is made of."""
    return {name: project / name for name in (package, "pyproject.toml", "README.md", "LICENSE")}


def _recipe(at: str) -> str:
    return " ".join((environment.PYTHON, at, *layers.SAME_ON_EVERY_RUN))
