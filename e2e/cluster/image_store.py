"""Images on the node, in containerd's store."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from e2e.cluster import images
from e2e.cluster.node_agents import CONTAINERD_SOCKET
from e2e.errors import StageError
from e2e.progress import step

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.cluster.images import Image
    from e2e.cluster.node import Node

INPUT_LABEL = "kvfence.io/made-of"  # on an image: digest of what it was made of
IMPORT_SECONDS = 600.0


class ImageStore:
    """The images that pods can be made of."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._ctr = ("ctr", "--address", CONTAINERD_SOCKET, "--namespace", "k8s.io")

    def answers(self) -> bool:
        """Whether containerd is up."""
        try:
            self._run("version", seconds=5.0)
        except StageError:
            return False
        return True

    def remove_containers(self) -> None:
        """Forget the containers of an earlier start, which was ended without asking them, and their file systems."""
        names = self.containers()
        if names:
            self._run("containers", "delete", *names)

    def containers(self) -> list[str]:
        """Ids of all containers, those that hold pods' namespaces too."""
        return self._run("containers", "list", "--quiet").split()

    def load(self, image: Image) -> None:
        """Have `image` in the store; imports it only when its layers or settings are not those that are there."""
        made_of = images.digest(repr((image, [_cheap_identity(path) for path in image.layers])).encode())
        if self._made_of(image.name) == made_of:
            return
        size = sum(path.stat().st_size for path in image.layers)
        with step(f"importing image {image.name}", f"{size / 1e6:.0f} MB"):
            self._import_stream(image)
            self._label(image.name, made_of)

    def load_thin(
        self, name: str, base: str, *layers: bytes | Path, changed: images.Changed = images.UNCHANGED
    ) -> None:
        """Have image `name` in the store: `base`, which is there, and thin layers on it. Takes 0.3 s.

        Args:
            name: of the new image.
            base: of the image below.
            layers: tars or files of them, the lowest first.
            changed: settings that are not the base's.

        Raises:
            StageError: `base` is not in the store, or `name` is not one that a pod can use.
        """
        if name.rpartition("/")[2].partition(":")[2] in {"", "latest"}:
            raise StageError(f"image {name!r} needs a tag other than latest, such as NAME:1: the kubelet would pull it")
        base_digest = self.digest(base)
        identities = [one if isinstance(one, bytes) else repr(_cheap_identity(one)).encode() for one in layers]
        parts = [base_digest, repr(changed), *map(images.digest, identities)]
        made_of = images.digest("\n".join(parts).encode())
        if self._made_of(name) == made_of:
            return
        manifest = self._blob(base_digest)
        config = self._blob(manifest["config"]["digest"])
        added = [one if isinstance(one, bytes) else one.read_bytes() for one in layers]
        self.load_archive(images.thin_archive(name, manifest, config, added, changed))
        self._label(name, made_of)

    def load_archive(self, archive: bytes) -> None:
        """Import an image archive, docker or OCI."""
        self._run("images", "import", "-", given=archive, seconds=IMPORT_SECONDS)

    def load_archive_file(self, path: Path) -> None:
        """Import an image archive from a file on this machine."""
        self._run("images", "import", str(path.absolute()), seconds=IMPORT_SECONDS)

    def names(self) -> list[str]:
        """Names of all images that have one."""
        return [name for name in self._run("images", "list", "--quiet").split() if not name.startswith("sha256:")]

    def _import_stream(self, image: Image) -> None:
        command = self._node.command([*self._ctr, "images", "import", "-"])
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as ctr:
            assert ctr.stdin is not None
            assert ctr.stdout is not None
            try:
                images.write_archive(image, ctr.stdin)
                ctr.stdin.close()
            except BrokenPipeError:
                pass  # it ended early, and says why below
            said = ctr.stdout.read().decode(errors="replace")
        if ctr.returncode != 0:
            raise StageError(f"containerd did not take image {image.name}: {said[-2000:]}")

    def _row(self, name: str) -> list[str]:
        rows = self._run("images", "list", f"name=={name}").splitlines()[1:]
        return rows[0].split() if rows else []

    def digest(self, name: str) -> str:
        """Digest of the manifest of an image on the node.

        Raises:
            StageError: it is not there.
        """
        row = self._row(name)
        if not row:
            raise StageError(f"image {name} is not on the node; there are: {', '.join(self.names()) or 'none'}")
        return next(column for column in row if column.startswith("sha256:"))

    def _made_of(self, name: str) -> str:
        row = self._row(name)
        labels = dict(pair.split("=", 1) for pair in row[-1].split(",") if "=" in pair) if row else {}
        return labels.get(INPUT_LABEL, "")

    def _label(self, name: str, made_of: str) -> None:
        self._run("images", "label", name, f"{INPUT_LABEL}={made_of}")

    def _blob(self, blob_digest: str) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self._run("content", "get", blob_digest))
        return parsed

    def _run(self, *arguments: str, given: bytes = b"", seconds: float = 60.0) -> str:
        return self._node.run(*self._ctr, *arguments, given=given, seconds=seconds)


def _cheap_identity(path: Path) -> tuple[str, int, int]:
    """Layers come out of the cache, where a file is written once: its place, size and time say what it is."""
    stat = path.stat()
    return (str(path), stat.st_size, stat.st_mtime_ns)
