"""An image is imported only when it is not what the node has already."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any, cast

import pytest

from e2e.cluster import images
from e2e.cluster.image_store import INPUT_LABEL, ImageStore
from e2e.cluster.images import Changed, Image
from e2e.cluster.layout import Layout
from e2e.cluster.node import Node
from e2e.errors import StageError

HEADER = "REF TYPE DIGEST SIZE PLATFORMS LABELS"
IT = "kvfence.io/test/it:1"


class FakeNode:
    """Answers `ctr` as containerd 1.6 does, notes what it was asked, and takes streamed imports into a file."""

    def __init__(self, folder: Path) -> None:
        self.streamed = folder / "streamed.tar"
        self.images: dict[str, tuple[str, str]] = {}  # name: digest, labels
        self.blobs: dict[str, str] = {}
        self.containers: list[str] = []
        self.imported: list[bytes | str] = []
        self.deleted: list[str] = []
        self.dead = False
        self.refuses = ""

    def command(self, arguments: list[str]) -> list[str]:
        """Of an import that reads a stream."""
        assert arguments[-3:] == ["images", "import", "-"]
        if self.refuses:
            return ["/bin/sh", "-c", f"echo {self.refuses} >&2; exit 1"]
        self.images.setdefault(IT, ("sha256:new", "-"))
        return ["/bin/sh", "-c", f"cat >> {self.streamed}"]

    def run(self, *arguments: str, given: bytes = b"", seconds: float = 0) -> str:
        assert arguments[0] == "ctr"
        assert arguments[3:5] == ("--namespace", "k8s.io")
        assert seconds > 0
        if self.dead:
            raise StageError("`ctr` failed: connection refused")
        return self.answer(*arguments[5:], given=given)

    def answer(self, *asked: str, given: bytes) -> str:
        match asked:
            case ("version",):
                return "Server: 1.6.20\n"
            case ("images", "list", "--quiet"):
                return "".join(f"{name}\n" for name in self.images)
            case ("images", "list", name):
                rows = [self.row(one) for one in self.images if f"name=={one}" == name]
                return "\n".join([HEADER, *rows]) + "\n"
            case ("images", "label", name, label):
                digest, labels = self.images[name]
                assert label not in labels
                self.images[name] = (digest, f"io.cri-containerd.image=managed,{label}")
            case ("images", "import", "-"):
                self.imported.append(given)
                self.images[thin_name(given)] = ("sha256:thin", "-")
            case ("images", "import", path):
                assert not given
                self.imported.append(path)
            case ("content", "get", digest):
                return self.blobs[digest]
            case ("containers", "list", "--quiet"):
                return "".join(f"{name}\n" for name in self.containers)
            case ("containers", "delete", *names):
                assert names
                self.deleted += names
            case _:
                raise AssertionError(asked)
        return ""

    def row(self, name: str) -> str:
        digest, labels = self.images[name]
        return f"{name} application/vnd.docker.distribution.manifest.v2+json {digest} 1.2 MiB linux/amd64 {labels}"

    def imports(self) -> int:
        """How many archives came as a stream."""
        if not self.streamed.exists():
            return 0
        with tarfile.open(self.streamed, ignore_zeros=True) as archives:
            return archives.getnames().count("manifest.json")


def thin_name(archive: bytes) -> str:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        index = tar.extractfile("index.json")
        assert index
        annotations: dict[str, str] = json.load(index)["manifests"][0]["annotations"]
        return annotations["io.containerd.image.name"]


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    return FakeNode(tmp_path)


@pytest.fixture
def store(node: FakeNode) -> ImageStore:
    return ImageStore(cast("Node", node))


@pytest.fixture
def image(tmp_path: Path) -> Image:
    (tmp_path / "layer.tar").write_bytes(b"layer")
    return Image(IT, (tmp_path / "layer.tar",))


def test_an_image_that_is_not_there_is_imported_and_labelled(node: FakeNode, store: ImageStore, image: Image) -> None:
    store.load(image)
    assert node.imports() == 1
    assert f"{INPUT_LABEL}=sha256:" in node.images[IT][1]


def test_an_image_that_is_there_is_not_imported_again(node: FakeNode, store: ImageStore, image: Image) -> None:
    store.load(image)
    store.load(image)
    assert node.imports() == 1


def test_an_image_whose_layer_was_written_anew_is_imported_again(
    node: FakeNode, store: ImageStore, image: Image
) -> None:
    store.load(image)
    os.utime(image.layers[0], ns=(1, 1))
    store.load(image)
    assert node.imports() == 2


@pytest.mark.parametrize("change", [{"entrypoint": ("/other",)}, {"environment": ("A=b",)}])
def test_an_image_with_other_settings_is_imported_again(
    change: dict[str, Any], node: FakeNode, store: ImageStore, image: Image
) -> None:
    store.load(image)
    store.load(Image(**{"name": image.name, "layers": image.layers} | change))
    assert node.imports() == 2


@pytest.mark.parametrize("labels", ["-", "io.cri-containerd.image=managed", f"a=b,{INPUT_LABEL}=sha256:other"])
def test_an_image_of_the_same_name_that_was_made_of_something_else_is_replaced(
    labels: str, node: FakeNode, store: ImageStore, image: Image
) -> None:
    node.images[IT] = ("sha256:old", labels)
    store.load(image)
    assert node.imports() == 1


def test_an_import_that_containerd_ends_early_fails_with_what_it_said(
    node: FakeNode, store: ImageStore, image: Image
) -> None:
    image.layers[0].write_bytes(bytes(5_000_000))  # more than a pipe holds
    node.refuses = "no space left on device"
    with pytest.raises(StageError, match=rf"did not take image {IT}: no space left on device"):
        store.load(image)
    assert node.images == {}


def put_base(node: FakeNode, manifest_digest: str = "sha256:base") -> None:
    node.images["kvfence.io/test/base:1"] = (manifest_digest, "-")
    media = "application/vnd.oci.image.layer.v1.tar"
    node.blobs[manifest_digest] = json.dumps(
        {
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"digest": "sha256:config"},
            "layers": [{"mediaType": media, "digest": "sha256:below", "size": 1}],
        }
    )
    node.blobs["sha256:config"] = json.dumps({"rootfs": {"diff_ids": ["sha256:below"]}})


def test_a_thin_image_is_imported_once_until_its_layer_changes(node: FakeNode, store: ImageStore) -> None:
    put_base(node)
    for _ in range(2):
        store.load_thin(IT, "kvfence.io/test/base:1", b"layer")
    assert len(node.imported) == 1
    store.load_thin(IT, "kvfence.io/test/base:1", b"other layer")
    assert len(node.imported) == 2


def test_a_thin_image_is_imported_again_when_its_base_changes(node: FakeNode, store: ImageStore) -> None:
    put_base(node)
    store.load_thin(IT, "kvfence.io/test/base:1", b"layer")
    put_base(node, "sha256:another-base")
    store.load_thin(IT, "kvfence.io/test/base:1", b"layer")
    assert len(node.imported) == 2


def test_a_thin_image_is_imported_again_when_its_settings_change(node: FakeNode, store: ImageStore) -> None:
    put_base(node)
    other = Changed(user="1:1")
    for changed in (Changed(), other, other):
        store.load_thin(IT, "kvfence.io/test/base:1", b"layer", changed=changed)
    manifest, config = (json.loads(node.blobs[name]) for name in ("sha256:base", "sha256:config"))
    assert node.imported == [
        images.thin_archive(IT, manifest, config, [b"layer"], changed) for changed in (Changed(), other)
    ]


def test_a_layer_in_a_file_is_read_only_when_it_is_not_the_one_that_is_there(
    node: FakeNode, store: ImageStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer, read, reads = tmp_path / "thin.tar", Path.read_bytes, list[Path]()

    def read_bytes(path: Path) -> bytes:
        reads.append(path)
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    put_base(node)
    layer.write_bytes(b"layer")
    for _ in range(2):
        store.load_thin(IT, "kvfence.io/test/base:1", layer)
    assert reads == [layer]
    layer.write_bytes(b"other layer")
    store.load_thin(IT, "kvfence.io/test/base:1", layer)
    manifest, config = (json.loads(node.blobs[name]) for name in ("sha256:base", "sha256:config"))
    assert node.imported == [images.thin_archive(IT, manifest, config, [one]) for one in (b"layer", b"other layer")]


def test_a_thin_image_is_made_of_the_base_that_is_on_the_node(node: FakeNode, store: ImageStore) -> None:
    put_base(node)
    store.load_thin(IT, "kvfence.io/test/base:1", b"layer")
    manifest, config = (json.loads(node.blobs[name]) for name in ("sha256:base", "sha256:config"))
    assert node.imported == [images.thin_archive(IT, manifest, config, [b"layer"])]


def test_a_base_that_is_not_there_is_named_with_those_that_are(node: FakeNode, store: ImageStore) -> None:
    node.images |= {"kvfence.io/test/other:1": ("sha256:1", "-"), "sha256:2": ("sha256:2", "-")}
    with pytest.raises(StageError) as caught:
        store.load_thin(IT, "kvfence.io/test/base:1", b"layer")
    assert str(caught.value) == "image kvfence.io/test/base:1 is not on the node; there are: kvfence.io/test/other:1"
    assert node.imported == []


def test_a_base_is_missing_on_a_node_without_images_too(store: ImageStore) -> None:
    with pytest.raises(StageError, match="there are: none"):
        store.load_thin(IT, "kvfence.io/test/base:1", b"layer")


def test_names_are_those_that_people_gave(node: FakeNode, store: ImageStore) -> None:
    node.images = {IT: ("sha256:1", "-"), "sha256:1": ("sha256:1", "-"), "kvfence.io/b:2": ("sha256:2", "-")}
    assert store.names() == [IT, "kvfence.io/b:2"]


def test_an_archive_in_a_file_is_named_by_its_absolute_path_since_nsenter_starts_in_the_root_folder(
    node: FakeNode, store: ImageStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store.load_archive_file(Path("it.tar"))
    assert node.imported == [str(tmp_path / "it.tar")]


def test_containerd_answers_when_its_command_does(node: FakeNode, store: ImageStore) -> None:
    assert store.answers()
    node.dead = True
    assert not store.answers()


def test_the_containers_of_an_earlier_start_are_removed_all_at_once(node: FakeNode, store: ImageStore) -> None:
    store.remove_containers()
    assert node.deleted == []
    node.containers = ["one", "two"]
    store.remove_containers()
    assert node.deleted == ["one", "two"]


@pytest.mark.parametrize("name", ["operator", "kvfence.io:5000/operator", "kvfence.io/operator:latest", "operator:"])
def test_a_name_that_the_kubelet_would_pull_is_refused(name: str, layout: Layout) -> None:
    store = ImageStore(Node(layout, 41))
    with pytest.raises(StageError, match="needs a tag other than latest"):
        store.load_thin(name, "base:1", b"layer")
