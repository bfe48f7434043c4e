"""The two small images that every stage has: `pause`, which the runtime wants, and `busybox`, for pods of tests."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from e2e import cache
from e2e.cluster import golang
from e2e.cluster.images import Image, layer
from e2e.cluster.node_agents import PAUSE_IMAGE
from e2e.commands import run

BUSYBOX_IMAGE = "kvfence.io/stage/busybox:1"


def pause() -> Image:
    """The container that holds a pod's namespaces: the same program as the node's own first process."""
    program = golang.init() / golang.INIT

    def build(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as root:
            shutil.copy(program, Path(root) / "pause")
            (folder / "layer.tar").write_bytes(layer(Path(root)))

    made = cache.built("image-pause", {"program": program}, build)
    return Image(PAUSE_IMAGE, (made / "layer.tar",), entrypoint=("/pause",))


def busybox() -> Image:
    """Debian's static busybox, each command by its name. Probe connections with `nc`: its `wget` crashes in a pod."""
    program = Path(shutil.which("busybox") or "/bin/busybox")

    def build(folder: Path) -> None:
        commands = run(str(program), "--list").split()
        with tempfile.TemporaryDirectory() as root:
            binaries = Path(root) / "bin"
            binaries.mkdir()
            shutil.copy(program, binaries / "busybox")
            for command in commands:
                if command != "busybox":
                    (binaries / command).symlink_to("busybox")
            (folder / "layer.tar").write_bytes(layer(Path(root)))

    made = cache.built("image-busybox", {"program": program}, build)
    return Image(BUSYBOX_IMAGE, (made / "layer.tar",), entrypoint=("/bin/sh",))
