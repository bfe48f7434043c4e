"""The small images hold one program each, and are made once."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from e2e.cluster import golang, small_images
from e2e.cluster.images import Image
from e2e.cluster.node_agents import PAUSE_IMAGE


def members(image: Image) -> dict[str, tarfile.TarInfo]:
    (layer,) = image.layers
    with tarfile.open(layer) as tar:
        return {member.name: member for member in tar}


@pytest.fixture
def init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / golang.INIT
    program.write_bytes(b"init")
    program.chmod(0o755)
    monkeypatch.setattr(golang, "init", lambda: tmp_path)
    return program


@pytest.fixture
def busybox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "busybox"
    program.write_text(f"#!/bin/sh\necho called >> {tmp_path}/calls\nprintf 'busybox\\ncat\\nsh\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return program


def test_pause_is_the_first_process_of_the_node_under_the_name_that_the_runtime_wants(init: Path) -> None:
    image = small_images.pause()
    assert image.name == PAUSE_IMAGE
    assert image.entrypoint == ("/pause",)
    assert set(members(image)) == {"pause"}
    assert members(image)["pause"].mode & 0o111
    assert members(image)["pause"].size == len(b"init")


def test_pause_is_made_once_until_its_program_changes(init: Path) -> None:
    first = small_images.pause()
    assert small_images.pause() == first
    init.write_bytes(b"another init")
    assert small_images.pause() != first


def test_busybox_is_every_one_of_its_commands_by_a_link(busybox: Path) -> None:
    found = members(small_images.busybox())
    assert set(found) == {"bin", "bin/busybox", "bin/cat", "bin/sh"}
    assert {found[f"bin/{name}"].linkname for name in ("cat", "sh")} == {"busybox"}
    assert found["bin/busybox"].isreg()


def test_busybox_is_asked_for_its_commands_once(busybox: Path) -> None:
    assert small_images.busybox() == small_images.busybox()
    assert (busybox.parent / "calls").read_text() == "called\n"
