"""The programs that are built from Go modules, once per version."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from e2e import cache
from e2e.commands import run
from e2e.errors import StageError
from e2e.progress import step

MODULES = Path(__file__).parent / "go"
KUBERNETES_COMMANDS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy")
ADDON_COMMANDS = ("coredns", "network-policy")
INIT = "kvfence-stage-init"


def kubernetes_version(go_mod: Path = MODULES / "kubernetes" / "go.mod") -> str:
    """The Kubernetes version of the stage, such as `v1.37.2`. `go.mod` is the one place where it stands."""
    found = re.search(r"^\s*k8s\.io/kubernetes (v1\.\d+\.\d+)$", go_mod.read_text(), re.MULTILINE)
    if not found:
        raise StageError(f"{go_mod} does not require k8s.io/kubernetes v1.MINOR.PATCH")
    return found[1]


def kubernetes() -> Path:
    """Folder with the Kubernetes programs: one binary, a link per command."""
    version = kubernetes_version()
    package = "k8s.io/component-base/version"
    # without the stamp the server says v0.0.0-master and Helm's kubeVersion checks fail
    stamp = {"gitVersion": version, "gitMajor": "1", "gitMinor": version.split(".")[1], "gitTreeState": "clean"}
    flags = " ".join(f"-X {package}.{name}={value}" for name, value in stamp.items())
    return _built("kubernetes", f"Kubernetes {version}", "7 to 11 min on 2 cores, once", KUBERNETES_COMMANDS, flags)


def etcd() -> Path:
    """Folder with `etcd`."""
    return _built("etcd", "etcd", "about 1 min", ("etcd",), package="go.etcd.io/etcd/server/v3")


def addons() -> Path:
    """Folder with `coredns` and `network-policy`."""
    return _built("addons", "CoreDNS and the NetworkPolicy firewall", "about 2 min", ADDON_COMMANDS)


def init() -> Path:
    """Folder with the first process of the node and of each pod, a static binary."""
    return _built("init", "the init process", "seconds", (INIT,))


def _built(
    module: str, what: str, expect: str, commands: tuple[str, ...], ldflags: str = "", package: str = "."
) -> Path:
    """Build `package` of `go/<module>` and link it under each of its command names."""
    source = MODULES / module
    # the same flags for all, always: another set compiles the whole of it anew
    flags = ["-trimpath", "-ldflags", f"-s -w {ldflags}".strip()]

    def build(folder: Path) -> None:
        with step(f"building {what}", expect):
            binary = folder / commands[0]
            _go(source, "build", "-o", str(binary), *flags, package)
            for other in commands[1:]:
                (folder / other).symlink_to(binary.name)

    inputs: dict[str, str | Path] = {
        "source": source,
        "package": package,
        "flags": " ".join(flags),
        "go": _go_version(),
    }
    return cache.built(f"go-{module}", inputs, build)


def _go_version() -> str:
    return _go(MODULES, "env", "GOVERSION").strip()


def _go(folder: Path, *arguments: str) -> str:
    program = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if not program:
        raise StageError(
            "the stage is built with Go 1.26 or newer, and there is no `go` on PATH: install it, then try again"
        )
    shown = f"`go {' '.join(arguments)}` in {folder}"
    return run(program, *arguments, folder=folder, settings={"CGO_ENABLED": "0"}, shown=shown)


def change_kubernetes_version(version: str) -> None:
    """Write another Kubernetes version, such as `v1.37.3`, into `go.mod` and `go.sum`.

    Raises:
        StageError: not a version, or one that the module proxy does not have. Nothing is changed then.
    """
    if not re.fullmatch(r"v1\.\d+\.\d+", version):
        raise StageError(
            f"{version!r} is not a Kubernetes version: write v1.MINOR.PATCH, such as {kubernetes_version()}"
        )
    source = MODULES / "kubernetes"
    before = {name: (source / name).read_bytes() for name in ("go.mod", "go.sum")}
    (source / "go.mod").write_text(with_version(before["go.mod"].decode(), kubernetes_version(), version))
    try:
        with step(f"resolving the modules of Kubernetes {version}"):
            _go(source, "mod", "tidy")
    except BaseException:
        for name, content in before.items():
            (source / name).write_bytes(content)
        raise


def with_version(go_mod: str, old: str, new: str) -> str:
    """The text of `go.mod` with Kubernetes at `new` instead of `old`; its libraries are v0.MINOR.PATCH of the same."""
    for prefix in ("v1", "v0"):
        was, now = (re.escape(old), new) if prefix == "v1" else (re.escape("v0" + old[2:]), "v0" + new[2:])
        # not sigs.k8s.io/..., which may stand at the same version by chance
        go_mod = re.sub(rf"((?<![\w./-])k8s\.io/\S+ ){was}(?![\w.+-])", rf"\g<1>{now}", go_mod)
    return go_mod
