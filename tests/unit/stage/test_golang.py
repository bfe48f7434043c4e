"""One Kubernetes version, which a command changes as a whole or not at all, and builds that carry it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e.cluster import golang
from e2e.errors import StageError

GO_MOD = golang.MODULES / "kubernetes" / "go.mod"
# Modules of k8s.io that have versions of their own.
APART = {"k8s.io/klog/v2", "k8s.io/kube-openapi", "k8s.io/utils"}

versions = st.builds("v1.{}.{}".format, st.integers(20, 60), st.integers(0, 30))
names = st.from_regex(r"[a-z]{1,8}(-[a-z]{1,8})?", fullmatch=True)


def library(version: str) -> str:
    """The version of Kubernetes' libraries that belongs to the one of Kubernetes."""
    return "v0" + version.removeprefix("v1")


@st.composite
def own_lines(draw: st.DrawFn, version: str) -> str:
    name = draw(names)
    return draw(
        st.sampled_from(
            [
                f"\tk8s.io/kubernetes {version}",
                f"\tk8s.io/{name} {library(version)}",
                f"\tk8s.io/{name} {library(version)} // indirect",
                f"\tk8s.io/{name} => k8s.io/{name} {library(version)}",
            ]
        )
    )


@st.composite
def foreign_lines(draw: st.DrawFn, version: str) -> str:
    """Lines that are not Kubernetes' own, among them some that stand at the very same version by chance."""
    name = draw(names)
    return draw(
        st.sampled_from(
            [
                "\tk8s.io/klog/v2 v2.140.0 // indirect",
                "\tk8s.io/kube-openapi v0.0.0-20260721132016-d427ff9ee9ad // indirect",
                "\tk8s.io/utils v0.0.0-20260626114624-be93311217bd // indirect",
                f"\tk8s.io/{name} v0.0.0 // indirect",
                f"\tk8s.io/{name} {library(version)}0 // indirect",
                f"\tk8s.io/{name} {library(version)}-rc.0 // indirect",
                f"\tsigs.k8s.io/{name} {library(version)} // indirect",
                f"\tgithub.com/{name}/k8s {library(version)} // indirect",
                f"\texample.com/k8s.io/{name} {version}",
                "go 1.26.0",
                "// k8s.io in a comment",
            ]
        )
    )


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, str, list[tuple[bool, str]]]:
    """An old version, a new one, and the lines of a go.mod at the old one, each with whether it is Kubernetes' own."""
    old, new = draw(versions), draw(versions)
    own = own_lines(old).map(lambda line: (True, line))
    foreign = foreign_lines(old).map(lambda line: (False, line))
    lines = draw(st.lists(own | foreign, max_size=8))
    return old, new, lines


@given(changes())
def test_another_version_is_written_into_kubernetes_own_lines_alone(
    change: tuple[str, str, list[tuple[bool, str]]],
) -> None:
    old, new, lines = change
    written = golang.with_version("\n".join(line for _, line in lines), old, new).split("\n") if lines else []
    for (own, before), after in zip(lines, written, strict=True):
        if not own:
            assert after == before
        elif "kubernetes " in before:
            assert after == before.replace(old, new)
        else:
            assert after == before.replace(library(old), library(new))


@given(versions)
def test_a_version_changed_and_changed_back_is_the_file_as_committed(version: str) -> None:
    committed, now = GO_MOD.read_text(), golang.kubernetes_version()
    assert golang.with_version(golang.with_version(committed, now, version), version, now) == committed


def test_a_module_of_another_group_that_stands_at_the_same_version_is_left_alone() -> None:
    line = "\tsigs.k8s.io/apiserver-network-proxy/konnectivity-client v0.36.0 // indirect\n"
    assert golang.with_version(line, "v1.36.0", "v1.37.2") == line


def test_the_committed_go_mod_has_one_version_in_all_of_kubernetes_own_modules() -> None:
    text, version = GO_MOD.read_text(), golang.kubernetes_version()
    found = re.findall(r"(?<![\w./-])(k8s\.io/\S+) (v\S+)", text)
    own = {(name, at) for name, at in found if name not in APART and at != "v0.0.0"}
    replaced = set(re.findall(r"^\t(k8s\.io/\S+) => ", text, re.MULTILINE))
    assert {at for name, at in own if name != "k8s.io/kubernetes"} == {library(version)}
    assert {at for name, at in own if name == "k8s.io/kubernetes"} == {version}
    assert {name for name, at in found if at == "v0.0.0"} <= replaced  # else the module proxy is asked for v0.0.0
    assert len(own) > 30


def test_the_version_is_read_from_go_mod(tmp_path: Path) -> None:
    go_mod = tmp_path / "go.mod"
    go_mod.write_text("require (\n\tk8s.io/kubelet v0.9.9\n\tk8s.io/kubernetes v1.41.7\n)\n")
    assert golang.kubernetes_version(go_mod) == "v1.41.7"


@pytest.mark.parametrize(
    "line", ["", "k8s.io/kubernetes v1.41", "k8s.io/kubernetes-csi v1.41.7", "// k8s.io/kubernetes"]
)
def test_a_go_mod_without_a_kubernetes_version_is_named(line: str, tmp_path: Path) -> None:
    go_mod = tmp_path / "go.mod"
    go_mod.write_text(f"require (\n\t{line}\n)\n")
    with pytest.raises(StageError, match=re.escape(f"{go_mod} does not require k8s.io/kubernetes")):
        golang.kubernetes_version(go_mod)


class Go:
    """In the place of the `go` command: notes what it is asked, and does `then`."""

    def __init__(self) -> None:
        self.calls: list[tuple[Path, tuple[str, ...]]] = []
        self.fails: BaseException | None = None

    def __call__(self, folder: Path, *arguments: str) -> None:
        self.calls.append((folder, arguments))
        if arguments[0] == "mod":
            (folder / "go.sum").write_text("half written")
        else:
            Path(arguments[arguments.index("-o") + 1]).write_text("binary")
        if self.fails:
            raise self.fails


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch) -> Go:
    fake = Go()
    monkeypatch.setattr(golang, "_go", fake)
    monkeypatch.setattr(golang, "_go_version", lambda: "go1.26.8")
    return fake


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the Go modules that a test may change."""
    copy = tmp_path / "go"
    shutil.copytree(golang.MODULES, copy, copy_function=shutil.copyfile)  # writable, whatever the checkout is
    monkeypatch.setattr(golang, "MODULES", copy)
    return copy


@pytest.mark.parametrize(
    "nonsense", ["", "1.37.3", "v1.37", "v2.0.0", "v1.37.3-rc.1", "latest", "v1.37.3\n", "v1.37.x", "$(reboot)"]
)
def test_what_is_no_version_is_refused_before_anything_is_touched(nonsense: str, modules: Path, go: Go) -> None:
    before = (modules / "kubernetes" / "go.mod").read_bytes()
    with pytest.raises(StageError, match=r"is not a Kubernetes version: write v1\.MINOR\.PATCH, such as v1\."):
        golang.change_kubernetes_version(nonsense)
    assert go.calls == []
    assert (modules / "kubernetes" / "go.mod").read_bytes() == before


def test_a_new_version_is_written_and_its_modules_are_resolved(modules: Path, go: Go) -> None:
    golang.change_kubernetes_version("v1.99.3")
    assert golang.kubernetes_version(modules / "kubernetes" / "go.mod") == "v1.99.3"
    assert go.calls == [(modules / "kubernetes", ("mod", "tidy"))]


@pytest.mark.parametrize("reason", [StageError("unknown revision v1.99.3"), KeyboardInterrupt()])
def test_a_version_that_cannot_be_had_leaves_both_files_as_they_were(
    reason: BaseException, modules: Path, go: Go
) -> None:
    go.fails = reason
    before = {name: (modules / "kubernetes" / name).read_bytes() for name in ("go.mod", "go.sum")}
    with pytest.raises(type(reason)):
        golang.change_kubernetes_version("v1.99.3")
    assert {name: (modules / "kubernetes" / name).read_bytes() for name in before} == before
    assert go.calls != []


def test_a_machine_without_go_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(StageError, match="there is no `go` on PATH: install it"):
        golang.etcd()


def test_go_is_found_where_its_own_archive_puts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def which(name: str, path: str = "") -> str | None:
        return f"{path}/{name}" if path else None

    started: list[str] = []

    def run(command: tuple[str, ...], **_: object) -> subprocess.CompletedProcess[bytes]:
        started.append(command[0])
        return subprocess.CompletedProcess(command, 0, b"go1.26.8\n", b"")

    monkeypatch.setattr(shutil, "which", which)
    monkeypatch.setattr(subprocess, "run", run)
    assert golang._go_version() == "go1.26.8"
    assert started == ["/usr/local/go/bin/go"]


def test_what_go_says_when_it_fails_is_in_the_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = tmp_path / "go"
    failing.write_text("#!/bin/sh\necho cannot find module providing x >&2\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(StageError) as caught:
        golang._go(tmp_path, "mod", "tidy")
    assert str(caught.value) == f"`go mod tidy` in {tmp_path} failed: cannot find module providing x"


def test_programs_are_built_without_c_since_they_run_in_pods_without_a_c_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environments = []

    def run(command: tuple[str, ...], *, env: dict[str, str], **_: object) -> subprocess.CompletedProcess[bytes]:
        environments.append(env)
        return subprocess.CompletedProcess(command, 0, b"", b"")

    monkeypatch.setattr(shutil, "which", lambda *_, **__: "go")
    monkeypatch.setattr(subprocess, "run", run)
    golang._go(tmp_path, "build")
    assert environments[0]["CGO_ENABLED"] == "0"


def test_the_version_is_stamped_else_the_server_says_0_0_and_helm_refuses_charts(go: Go) -> None:
    golang.kubernetes()
    version = golang.kubernetes_version()
    arguments = go.calls[0][1]
    flags = arguments[arguments.index("-ldflags") + 1]
    for stamp in (f"gitVersion={version}", "gitMajor=1", f"gitMinor={version.split('.')[1]}"):
        assert f"-X k8s.io/component-base/version.{stamp}" in flags


def test_each_command_of_kubernetes_is_a_link_to_the_one_program_that_is_all_of_them(go: Go) -> None:
    folder = golang.kubernetes()
    assert len(go.calls) == 1
    assert {path.name for path in folder.iterdir()} == set(golang.KUBERNETES_COMMANDS)
    assert {path.resolve() for path in folder.iterdir()} == {folder / golang.KUBERNETES_COMMANDS[0]}


def test_a_program_is_built_again_when_its_sources_or_go_change(
    modules: Path, go: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    golang.init()
    golang.init()
    assert len(go.calls) == 1
    (modules / "init" / "main.go").write_text("package main\n")
    golang.init()
    assert len(go.calls) == 2
    monkeypatch.setattr(golang, "_go_version", lambda: "go1.27.0")
    golang.init()
    assert len(go.calls) == 3


def test_all_programs_are_built_with_the_same_flags_since_other_ones_compile_everything_anew(go: Go) -> None:
    for build in (golang.kubernetes, golang.etcd, golang.addons, golang.init):
        build()
    for _, arguments in go.calls:
        assert arguments[3] == "-trimpath"
        assert arguments[5].startswith("-s -w")
