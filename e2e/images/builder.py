"""Builds images from Dockerfiles and runs them, without a daemon and without a registry: buildah, in chroots."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from e2e.cluster import images
from e2e.cluster.images import Changed
from e2e.commands import run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from e2e.cluster.images import Image

BUILD_SECONDS = 600.0
RUN_SECONDS = 60.0
OF_THIS_MACHINE = ("/etc/ssl/certs", "/etc/pip.conf")
"""What leads a build on this machine to its package indexes; mounted, so that no image holds it."""


@dataclass(frozen=True)
class Builder:
    """buildah, with a store of its own in a folder."""

    folder: Path

    def take(self, image: Image) -> str:
        """Have an image of the stage as a base, and return its name."""
        archive = self.folder / "base.tar"
        with archive.open("wb") as out:
            images.write_archive(image, out)
        self._buildah("pull", "--quiet", f"docker-archive:{archive}")
        archive.unlink()
        return image.name

    def build(self, tag: str, dockerfile: Path, context: Path, arguments: Mapping[str, str]) -> str:
        """Build an image and return its name.

        Raises:
            StageError: with what buildah said.
        """
        given = [f"--build-arg={name}={value}" for name, value in arguments.items()]
        given += [f"--volume={path}:{path}:ro" for path in OF_THIS_MACHINE if Path(path).exists()]
        where = (f"--tag={tag}", f"--file={dockerfile}", str(context))
        self._buildah("bud", "--isolation=chroot", "--pull-never", *given, *where, seconds=BUILD_SECONDS)
        return tag

    def settings(self, tag: str) -> Changed:
        """Return what an image says about how it is run."""
        said: dict[str, Any] = json.loads(self._buildah("inspect", "--type=image", tag))["OCIv1"]["config"]
        lists = {name: tuple(said.get(name) or ()) for name in ("Env", "Entrypoint", "Cmd")}
        return Changed(lists["Env"], said.get("User", ""), lists["Entrypoint"], lists["Cmd"])

    def run(self, tag: str, *command: str, mounts: Mapping[str, Path] | None = None) -> str:
        """Run a command in a container of an image, as the image's user, and return what it printed.

        Args:
            tag: of the image.
            command: program and arguments.
            mounts: folders of this machine, by where they are in the container.

        Raises:
            StageError: it failed, with what it said.
        """
        container = self._buildah("from", "--pull-never", tag).strip()
        given = [f"--volume={path}:{at}" for at, path in (mounts or {}).items()]
        return self._buildah("run", "--isolation=chroot", *given, container, "--", *command, seconds=RUN_SECONDS)

    def leave(self) -> None:
        """Remove all containers and images, and what they had mounted."""
        self._buildah("rm", "--all")
        self._buildah("rmi", "--all", "--force")

    def _buildah(self, *arguments: str, seconds: float = 120.0) -> str:
        store = (f"--root={self.folder / 'store'}", f"--runroot={self.folder / 'run'}")
        return run("buildah", *store, *arguments, seconds=seconds, shown=f"`buildah {arguments[0]}`")
