"""Images are written as tar files: the same content gives the same bytes, and every digest fits what lies there."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e.cluster import images
from e2e.cluster.images import Changed, Image

blobs = st.lists(st.binary(max_size=64), min_size=1, max_size=4)


def sha256(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def unpacked(archive: bytes) -> dict[str, bytes]:
    """The files of a tar, by name."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        handles = {member.name: tar.extractfile(member) for member in tar if member.isreg()}
        return {name: handle.read() for name, handle in handles.items() if handle}


def members(archive: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {member.name: member for member in tar}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "run").write_text("#!/bin/sh\n")
    (folder / "bin" / "run").chmod(0o755)
    (folder / "bin" / "link").symlink_to("run")
    (folder / "dangling").symlink_to("/nowhere/at-all")
    (folder / "data.txt").write_text("data")
    return folder


def test_the_same_folder_gives_the_same_layer_whenever_it_was_written(source: Path) -> None:
    before = images.layer(source)
    for path in (source / "data.txt", source / "bin", source / "bin" / "run"):
        os.utime(path, (1_000_000, 1_000_000))
    assert images.layer(source) == before
    assert {member.mtime for member in members(before).values()} == {0}


def test_the_same_folder_gives_the_same_layer_whoever_owns_it(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = images.layer(source)
    as_it_is = tarfile.TarFile.gettarinfo

    def anns(*arguments: Any, **named: Any) -> tarfile.TarInfo:
        info = as_it_is(*arguments, **named)
        info.uid, info.gid, info.uname, info.gname = 1234, 1235, "ann", "anns"
        return info

    monkeypatch.setattr(tarfile.TarFile, "gettarinfo", anns)
    after = images.layer(source)
    assert {(one.uid, one.gid, one.uname, one.gname) for one in members(after).values()} == {(0, 0, "root", "root")}
    assert after == before


def test_the_same_files_give_the_same_layer_in_whatever_order_they_were_made(tmp_path: Path) -> None:
    names = [f"{letter}{number}" for letter in "xay" for number in range(20)]
    for folder, order in (("one", names), ("other", names[::-1])):
        (tmp_path / folder).mkdir()
        for name in order:
            (tmp_path / folder / name).write_text(name)
    layer = images.layer(tmp_path / "one")
    assert layer == images.layer(tmp_path / "other")
    assert list(members(layer)) == sorted(names)


def test_another_content_name_or_right_to_run_gives_another_layer(source: Path) -> None:
    layers = {images.layer(source)}
    (source / "data.txt").write_text("Data")
    layers.add(images.layer(source))
    (source / "data.txt").rename(source / "more.txt")
    layers.add(images.layer(source))
    (source / "bin" / "run").chmod(0o644)
    layers.add(images.layer(source))
    assert len(layers) == 4


def test_a_program_keeps_its_right_to_run_and_its_content(source: Path) -> None:
    layer = images.layer(source)
    assert members(layer)["bin/run"].mode & 0o111
    assert unpacked(layer)["bin/run"] == b"#!/bin/sh\n"


@pytest.mark.parametrize(
    ("at", "name"),
    [("/", "data.txt"), ("/opt/shim", "opt/shim/data.txt"), ("opt/shim/", "opt/shim/data.txt"), ("", "data.txt")],
)
def test_the_content_lies_where_it_is_told_and_no_name_starts_at_the_root(at: str, name: str, source: Path) -> None:
    names = set(members(images.layer(source, at)))
    assert name in names
    assert len(names) == 5
    assert not [one for one in names if one.startswith("/") or "//" in one]


def test_a_link_stays_a_link_even_to_nowhere(source: Path) -> None:
    found = members(images.layer(source, "/opt"))
    assert (found["opt/bin/link"].issym(), found["opt/bin/link"].linkname) == (True, "run")
    assert (found["opt/dangling"].issym(), found["opt/dangling"].linkname) == (True, "/nowhere/at-all")


def test_what_python_compiled_beside_its_sources_is_left_out(source: Path) -> None:
    before = images.layer(source)
    (source / "bin" / "__pycache__").mkdir()
    (source / "bin" / "__pycache__" / "run.cpython-311.pyc").write_bytes(b"compiled")
    os.utime(source / "bin")
    assert images.layer(source) == before


def image(folder: Path, *contents: bytes) -> Image:
    paths = tuple(folder / f"{number}.tar" for number in range(len(contents)))
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    return Image("kvfence.io/test/it:1", paths, environment=("A=b",), entrypoint=("/run", "fast"))


def written(one: Image) -> bytes:
    out = io.BytesIO()
    images.write_archive(one, out)
    return out.getvalue()


def test_the_manifest_the_settings_and_the_layers_of_an_archive_agree(tmp_path: Path) -> None:
    contents = [b"base " * 1000, b"", b"top"]
    files = unpacked(written(image(tmp_path, *contents)))
    (manifest,) = json.loads(files["manifest.json"])
    assert manifest["RepoTags"] == ["kvfence.io/test/it:1"]
    assert [files[name] for name in manifest["Layers"]] == contents
    raw_config = files[manifest["Config"]]
    assert manifest["Config"] == hashlib.sha256(raw_config).hexdigest() + ".json"
    config = json.loads(raw_config)
    assert config["rootfs"] == {"type": "layers", "diff_ids": [sha256(one) for one in contents]}
    assert len(config["history"]) == len(contents)
    assert config["config"] == {"Env": ["A=b"], "Entrypoint": ["/run", "fast"]}
    assert set(files) == {"manifest.json", manifest["Config"], *manifest["Layers"]}


def test_an_image_that_runs_nothing_by_itself_says_so(tmp_path: Path) -> None:
    (tmp_path / "0.tar").write_bytes(b"layer")
    files = unpacked(written(Image("kvfence.io/test/it:1", (tmp_path / "0.tar",))))
    (manifest,) = json.loads(files["manifest.json"])
    assert json.loads(files[manifest["Config"]])["config"]["Entrypoint"] is None


def test_the_same_image_gives_the_same_archive(tmp_path: Path) -> None:
    one = image(tmp_path, b"base", b"top")
    before = written(one)
    for path in one.layers:
        os.utime(path, (1_000_000, 1_000_000))
    assert written(one) == before


def test_an_archive_can_be_written_into_a_pipe(tmp_path: Path) -> None:
    class Pipe:
        content = b""

        def write(self, part: bytes) -> int:
            self.content += part
            return len(part)

    pipe, one = Pipe(), image(tmp_path, b"base" * 1000)
    images.write_archive(one, pipe)  # type: ignore[arg-type]  # a pipe can write and nothing else
    assert pipe.content == written(one)


def test_digests_are_written_as_manifests_have_them(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert images.digest(b"") == empty
    assert images.file_digest(tmp_path / "file") == empty


def base(layers: list[bytes], **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Manifest and settings of an image as containerd holds it."""
    media = "application/vnd.docker.image.rootfs.diff.tar"
    config = {"config": {"Env": ["A=b"]}, "rootfs": {"type": "layers", "diff_ids": [sha256(one) for one in layers]}}
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": {"mediaType": "application/vnd.docker.container.image.v1+json", "digest": "sha256:0", "size": 1},
        "layers": [{"mediaType": media, "digest": sha256(one), "size": len(one)} for one in layers],
    }
    return manifest, config | more


@given(below=blobs, added=blobs)
def test_a_thin_archive_is_the_base_with_the_new_layers_on_top_and_holds_these_alone(
    below: list[bytes], added: list[bytes]
) -> None:
    manifest, config = base(below, history=[{"created_by": "base"}])
    files = unpacked(images.thin_archive("kvfence.io/test/thin:1", manifest, config, added))
    (entry,) = json.loads(files["index.json"])["manifests"]
    raw_manifest = files[blob_name(entry)]
    new_manifest = json.loads(raw_manifest)
    raw_config = files[blob_name(new_manifest["config"])]
    new_config = json.loads(raw_config)
    for described, content in ((entry, raw_manifest), (new_manifest["config"], raw_config)):
        assert (described["digest"], described["size"]) == (sha256(content), len(content))
    assert new_manifest["layers"][: len(below)] == manifest["layers"]
    for described, content in zip(new_manifest["layers"][len(below) :], added, strict=True):
        assert (described["digest"], described["size"]) == (sha256(content), len(content))
        assert described["mediaType"] == manifest["layers"][-1]["mediaType"]
    assert new_config["rootfs"]["diff_ids"] == [sha256(one) for one in [*below, *added]]
    assert len(new_config["history"]) == 1 + len(added)
    assert new_config["config"] == {"Env": ["A=b"]}
    held = {"oci-layout", "index.json", blob_name(entry), blob_name(new_manifest["config"])}
    assert set(files) == held | {f"blobs/sha256/{sha256(one)[7:]}" for one in added}
    assert all(sha256(content)[7:] == name[13:] for name, content in files.items() if name.startswith("blobs/"))


def settings_of(changed: Changed, **config: Any) -> dict[str, Any]:
    """The settings that a thin image on `base` has."""
    files = unpacked(images.thin_archive("kvfence.io/test/thin:1", *base([b"below"], **config), [b"added"], changed))
    (entry,) = json.loads(files["index.json"])["manifests"]
    manifest = json.loads(files[blob_name(entry)])
    settings: dict[str, Any] = json.loads(files[blob_name(manifest["config"])])["config"]
    return settings


def test_a_thin_image_has_its_bases_settings_but_for_what_it_changes() -> None:
    below = {"Env": ["A=b", "PATH=/bin", "AB=c"], "User": "0", "Entrypoint": ["/bin/sh"], "WorkingDir": "/x"}
    assert settings_of(Changed(), config=below) == below
    changed = settings_of(Changed(environment=("A=1=2", "NEW="), user="1:1", command=("-c", "x")), config=below)
    env = ["PATH=/bin", "AB=c", "A=1=2", "NEW="]
    assert changed == below | {"Env": env, "User": "1:1", "Cmd": ["-c", "x"]}
    assert settings_of(Changed(entrypoint=("/run",)), config=below) == below | {"Entrypoint": ["/run"]}


@pytest.mark.parametrize("config", [None, {}, {"Env": None}])
def test_a_thin_image_can_have_an_environment_where_its_base_has_none(config: dict[str, Any] | None) -> None:
    assert settings_of(Changed(environment=("A=b",)), config=config) == {"Env": ["A=b"]}


def blob_name(described: dict[str, Any]) -> str:
    return f"blobs/sha256/{described['digest'].removeprefix('sha256:')}"


def test_a_thin_archive_carries_its_name_as_containerd_and_as_others_read_it() -> None:
    files = unpacked(images.thin_archive("kvfence.io/test/thin:1", *base([b"below"]), [b"added"]))
    (entry,) = json.loads(files["index.json"])["manifests"]
    assert set(entry["annotations"].values()) == {"kvfence.io/test/thin:1"}
    assert set(entry["annotations"]) == {"io.containerd.image.name", "org.opencontainers.image.ref.name"}
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}


def test_the_same_base_and_layers_give_the_same_thin_archive_and_leave_the_base_as_it_is() -> None:
    manifest, config = base([b"below"])
    before = json.dumps([manifest, config])
    archives = {images.thin_archive("kvfence.io/test/thin:1", manifest, config, [b"added"]) for _ in range(2)}
    assert len(archives) == 1
    assert json.dumps([manifest, config]) == before
