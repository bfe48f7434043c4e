"""What takes long to build is built once and kept outside the checkout, under a key made of all its inputs."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

KEPT_PER_KIND = 2  # the one in use and the one before, so that going back a commit builds nothing


def root() -> Path:
    """The cache folder: `KVFENCE_STAGE_CACHE`, else `kvfence-stage` in the user's cache folder."""
    named = os.environ.get("KVFENCE_STAGE_CACHE")
    if named:
        return Path(named).absolute()
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home).absolute() / "kvfence-stage"


def key(inputs: Mapping[str, str | Path]) -> str:
    """Digest of the inputs, 16 hex digits: a string counts by its text, a file by its bytes, a folder by its files."""
    digest = hashlib.sha256()
    for name, value in sorted(inputs.items()):
        digest.update(f"{name}\0".encode())
        for part in _parts(value):
            digest.update(hashlib.sha256(part).digest())
        digest.update(b"\0")
    return digest.hexdigest()[:16]


def _parts(value: str | Path) -> Iterator[bytes]:
    if isinstance(value, str):
        yield value.encode()
    elif value.is_dir():
        for path in sorted(p for p in value.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
            yield str(path.relative_to(value)).encode()
            yield path.read_bytes()
    else:
        yield value.read_bytes()


@contextmanager
def lock(name: str) -> Iterator[None]:
    """Hold the named lock of the cache folder; another process that wants it waits."""
    root().mkdir(parents=True, exist_ok=True)
    with (root() / f"{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def built(kind: str, inputs: Mapping[str, str | Path], build: Callable[[Path], None]) -> Path:
    """Return the folder that `build` made from exactly these inputs, calling it only when there is none yet.

    Args:
        kind: what is built, one word; the folder is `root()/kind/<key>`.
        inputs: everything the result depends on. What is left out here is never rebuilt when it changes.
        build: fills the empty folder it is given. That folder has a name of its own until it is complete, so a build
            that was killed leaves nothing that passes for a result.

    Raises:
        Exception: whatever `build` raises; nothing is kept then.
    """
    place = root() / kind / key(inputs)
    with lock(kind):  # another process may be building the same
        if not place.is_dir():
            with _part(place) as part:
                build(part)
                part.rename(place)
        os.utime(place)  # when it was used last
        others = sorted(
            (p for p in place.parent.iterdir() if p != place), key=lambda p: p.stat().st_mtime, reverse=True
        )
        for old in others[KEPT_PER_KIND - 1 :]:
            shutil.rmtree(old)
    return place


@contextmanager
def _part(place: Path) -> Iterator[Path]:
    """An empty folder to build in. Only one of each kind is built at a time, so any other is left of a killed build."""
    place.parent.mkdir(parents=True, exist_ok=True)
    for stale in place.parent.glob("*.part"):
        shutil.rmtree(stale)
    part = place.with_suffix(".part")
    part.mkdir()
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)
