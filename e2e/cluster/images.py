"""Write container images as archives, without a registry and without a daemon. Pure but for the streams it is given."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CREATED = "2026-01-01T00:00:00Z"  # fixed: the same content gives the same image
READ_BYTES = 1 << 20
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Image:
    """What an image is made of."""

    name: str
    """Reference with a tag other than `latest`, which the kubelet would pull."""
    layers: tuple[Path, ...]
    """Tar files, the large and old ones first: containerd unpacks each digest once."""
    environment: tuple[str, ...] = (f"PATH={DEFAULT_PATH}",)
    entrypoint: tuple[str, ...] = ()
    """What a pod without `command` runs."""


@dataclass(frozen=True, slots=True)
class Changed:
    """What a thin image says otherwise than its base; what is left empty is the base's."""

    environment: tuple[str, ...] = ()
    """`NAME=value`: added to the base's variables, or instead of the one with that name."""
    user: str = ""
    """`UID:GID`."""
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    """Arguments of the entrypoint in a pod without `args`."""

    def applied(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the `config` of an image's configuration with these changes."""
        names = {one.partition("=")[0] for one in self.environment}
        kept = [one for one in settings.get("Env") or [] if one.partition("=")[0] not in names]
        mine = {"User": self.user, "Entrypoint": list(self.entrypoint), "Cmd": list(self.command)}
        changed = {name: value for name, value in mine.items() if value}
        return settings | ({"Env": [*kept, *self.environment]} if names else {}) | changed


UNCHANGED = Changed()


def digest(content: bytes) -> str:
    """As image manifests write it."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def file_digest(path: Path) -> str:
    """Digest of a file of any size."""
    with path.open("rb") as handle:
        return "sha256:" + hashlib.file_digest(handle, "sha256").hexdigest()


def layer(source: Path, at: str = "/") -> bytes:
    """A folder as a layer.

    Args:
        source: the folder.
        at: where its content lies in the image, an absolute path.

    Returns:
        A tar that depends on names, contents and modes alone: owner is root, times are 0.
    """

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if "__pycache__" in info.name.split("/"):
            return None
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = "root"
        info.pax_headers = {}
        return info

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path in sorted(source.rglob("*")):
            inside = f"{at.strip('/')}/{path.relative_to(source)}".lstrip("/")
            archive.add(path, inside, recursive=False, filter=plain)
    return buffer.getvalue()


def write_archive(image: Image, out: IO[bytes]) -> None:
    """Write `image` as a docker-archive onto a stream; layers are copied through, so that 2 GB cost no memory."""
    digests = [file_digest(path) for path in image.layers]
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "created": CREATED,
            "config": {"Env": list(image.environment), "Entrypoint": list(image.entrypoint) or None},
            "rootfs": {"type": "layers", "diff_ids": digests},
            "history": [{"created_by": "kvfence stage"} for _ in digests],
        },
        sort_keys=True,
    ).encode()
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    names = [f"{one.removeprefix('sha256:')}/layer.tar" for one in digests]
    manifest = json.dumps([{"Config": config_name, "RepoTags": [image.name], "Layers": names}]).encode()
    with tarfile.open(fileobj=out, mode="w|", bufsize=READ_BYTES) as archive:
        _add(archive, config_name, config)
        for name, path in zip(names, image.layers, strict=True):
            info = tarfile.TarInfo(name)
            info.size = path.stat().st_size
            with path.open("rb") as handle:
                archive.addfile(info, handle)
        _add(archive, "manifest.json", manifest)


def thin_archive(
    name: str,
    manifest: dict[str, Any],
    config: dict[str, Any],
    added: Sequence[bytes],
    changed: Changed = UNCHANGED,
) -> bytes:
    """An OCI archive of a base image and more layers, which holds the new layers alone.

    Args:
        name: of the new image.
        manifest: of the base, as containerd holds it; its layers are found in containerd's store.
        config: of the base.
        added: the new layers, tars.
        changed: settings that are not the base's.
    """
    diff_ids = [*config["rootfs"]["diff_ids"], *map(digest, added)]
    history = [*config.get("history", []), *({"created_by": "kvfence stage"} for _ in added)]
    lying = {"rootfs": config["rootfs"] | {"diff_ids": diff_ids}, "history": history}
    raw_config = json.dumps(config | lying | {"config": changed.applied(config.get("config") or {})}).encode()
    # plain tars, whatever the base's layers are: application/vnd.oci.image.layer.v1.tar+gzip, ...diff.tar.gzip
    media_type = manifest["layers"][-1]["mediaType"].removesuffix("+gzip").removesuffix(".gzip")
    new_layers = [{"mediaType": media_type, "digest": digest(one), "size": len(one)} for one in added]
    raw_manifest = json.dumps(
        manifest
        | {"config": manifest["config"] | {"digest": digest(raw_config), "size": len(raw_config)}}
        | {"layers": [*manifest["layers"], *new_layers]}
    ).encode()
    entry = {
        "mediaType": manifest["mediaType"],
        "digest": digest(raw_manifest),
        "size": len(raw_manifest),
        "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name},
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        _add(archive, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        _add(archive, "index.json", json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode())
        for blob in (*added, raw_config, raw_manifest):
            _add(archive, f"blobs/sha256/{digest(blob).removeprefix('sha256:')}", blob)
    return buffer.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))
