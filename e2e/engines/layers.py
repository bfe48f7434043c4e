"""The layers of the stage's engine images, as tar files, each built once and kept in the cache.

Four, from the one that hardly ever changes to the one that does: Debian with Python; SGLang with all its packages
(1.6 GB); an older SGLang in front of it, where it is wanted; the shim and the model. An edit of the shim rebuilds 27
MB. Together they look like a user's image: `python3` is a Python that has sglang, with no setting but the image's own.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from e2e import cache, progress
from e2e.cluster.images import DEFAULT_PATH
from e2e.cluster.packages import MOONCAKE_PACKAGES
from e2e.commands import run
from e2e.engines import environment
from e2e.engines.model import SHIM, model
from e2e.engines.servers import Place

if TYPE_CHECKING:
    from collections.abc import Sequence

IMAGES = {
    version: f"kvfence.io/stage/sglang:{version}" for version in (environment.VERSION, *environment.OLDER_VERSIONS)
}

SUITE = "bookworm"
PACKAGES = ("python3.11", *MOONCAKE_PACKAGES, "libgomp1")
VENV = "opt/venv"
PACKAGE_FOLDER = f"{VENV}/lib/python3.11/site-packages"
VENV_SETTINGS = "home = /usr/bin\ninclude-system-site-packages = false\n"
NOT_IN_IMAGE = ("torch/test", "torch/include")  # 145 MB that only building and testing torch itself use

SAME_ON_EVERY_RUN = (
    "--sort=name",
    "--mtime=@0",
    "--owner=0",
    "--group=0",
    "--numeric-owner",
    "--mode=a+rX,u+w",
    "--format=gnu",
)

TAR = "layer.tar"
EPOCH = "1767225600"  # 2026-01-01, for the times that the Debian layer itself makes up


def layers(version: str) -> tuple[Path, ...]:
    """Return the layers of the image `IMAGES[version]`, lowest first.

    Raises:
        EngineSetupError: with what failed and what to do.
    """
    older = () if version == environment.VERSION else (older_layer(version),)
    return (debian_layer(), engine_layer(), *older, stage_layer())


def place(version: str, address: str) -> Place:
    """Return where a server runs inside the image of `version`; `address` is how its partners reach it."""
    return Place(
        python=f"/{VENV}/bin/python",
        model="/models/tiny",
        import_path=_import_path(version),
        listen="0.0.0.0",  # noqa: S104 - inside a pod; who reaches it is the cluster's affair
        address=address,
    )


def settings(version: str) -> tuple[str, ...]:
    """Return the environment that the image `IMAGES[version]` gives to whatever runs in it."""
    return (f"PATH=/{VENV}/bin:{DEFAULT_PATH}", f"PYTHONPATH={':'.join(_import_path(version))}")


def debian_layer() -> Path:
    """Return a root file system with Debian's Python 3.11 and what the engine's libraries link (1 min, 0.2 GB)."""
    return debian("layer-debian", PACKAGES, "the engine images")


def debian(kind: str, names: Sequence[str], what_for: str) -> Path:
    """Return a root file system with these packages of Debian, Python 3.11 among them.

    Args:
        kind: of the folder in the cache.
        names: of the packages.
        what_for: for people who wait for it.

    Raises:
        EngineSetupError: there is no list of Debian's packages on this machine.
    """
    # Python is compiled again since its own compiled files are told stale by their times in an image.
    compiled = f'chroot "$1" {_compile("/usr/lib/python3.11")}'

    def build(folder: Path) -> None:
        command = ["mmdebstrap", "--variant=minbase", f"--include={','.join(names)}"]
        command += [f"--customize-hook={compiled}", SUITE, str(folder / TAR), *map(str, apt_sources())]
        with progress.step(f"building the Debian layer of {what_for}", "about 1 min"):
            run(*command, settings={"SOURCE_DATE_EPOCH": EPOCH}, shown="`mmdebstrap`")

    inputs: dict[str, str | Path] = {"suite": SUITE, "packages": " ".join(names), "hook": compiled, "epoch": EPOCH}
    return cache.built(kind, inputs, build) / TAR


def python3_layer() -> Path:
    """Return what makes the Python of `debian_layer` the image's `python3`."""

    def build(folder: Path) -> None:
        (folder / "usr" / "bin").mkdir(parents=True)
        (folder / "usr" / "bin" / "python3").symlink_to(f"python{environment.PYTHON}")
        pack(folder, "usr")

    return cache.built("layer-python3", {"recipe": " ".join((environment.PYTHON, *SAME_ON_EVERY_RUN))}, build) / TAR


def pack(folder: Path, *names: str) -> None:
    """Turn folders in a folder of the cache that is being built into its one layer."""
    _tar(folder, folder, *names)
    for name in names:
        shutil.rmtree(folder / name)


def engine_layer() -> Path:
    """Return SGLang and its packages as a virtual environment of the image's Python (20 s, 1.6 GB)."""
    packages = environment.environment() / "lib" / f"python{environment.PYTHON}" / "site-packages"

    def build(folder: Path) -> None:
        skeleton = folder / "skeleton"
        (skeleton / PACKAGE_FOLDER).mkdir(parents=True)  # an image gets no folder that no layer names
        (skeleton / VENV / "bin").mkdir()
        (skeleton / VENV / "bin" / "python").symlink_to(f"/usr/bin/python{environment.PYTHON}")
        (skeleton / VENV / "pyvenv.cfg").write_text(VENV_SETTINGS)
        excluded = [f"--exclude=./{path}" for path in NOT_IN_IMAGE]
        with progress.step("packing SGLang for the engine images", "about 20 s, 1.6 GB"):
            _tar(folder, skeleton, "opt")
            _tar(folder, packages, ".", *excluded, f"--transform=s,^\\.,{PACKAGE_FOLDER},S", "--append")
        shutil.rmtree(skeleton)

    inputs: dict[str, str | Path] = {
        "environment": packages.parents[2].name,
        "recipe": " ".join((PACKAGE_FOLDER, VENV_SETTINGS, *NOT_IN_IMAGE, *SAME_ON_EVERY_RUN)),
    }
    return cache.built("layer-engine", inputs, build) / TAR


def older_layer(version: str) -> Path:
    """Return what turns the image into an older SGLang when it comes first on `PYTHONPATH` (3 s, 0.3 GB)."""
    packages = environment.older(version)

    def build(folder: Path) -> None:
        with progress.step(f"packing SGLang {version} for its engine image"):
            _tar(folder, packages, ".", f"--transform=s,^\\.,{_older_folder(version)},S")

    recipe = " ".join((_older_folder(version), *SAME_ON_EVERY_RUN))
    inputs: dict[str, str | Path] = {"packages": packages.name, "recipe": recipe}
    return cache.built(f"layer-engine-{version}", inputs, build) / TAR


def stage_layer() -> Path:
    """Return the layer with the shim, the copy model and `python3` (27 MB). For the stage only: neither shim nor
    model is in an image that users get.
    """
    weights = model()

    def build(folder: Path) -> None:
        python = environment.environment() / "bin" / "python"
        shutil.copytree(SHIM, folder / "opt" / "shim", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(weights, folder / "models" / "tiny")
        run(str(python), *_compile(str(folder / "opt" / "shim")).split()[1:])
        (folder / VENV / "bin").mkdir(parents=True)
        (folder / VENV / "bin" / "python3").symlink_to("python")
        pack(folder, "opt", "models")

    recipe = " ".join(("opt/shim", "models/tiny", f"{VENV}/bin/python3", *SAME_ON_EVERY_RUN))
    inputs: dict[str, str | Path] = {"shim": SHIM, "model": weights.name, "recipe": recipe}
    return cache.built("layer-stage", inputs, build) / TAR


def _import_path(version: str) -> tuple[str, ...]:
    """What stands on `PYTHONPATH`: the shim, then what turns the packages into an older SGLang."""
    return ("/opt/shim",) if version == environment.VERSION else ("/opt/shim", f"/{_older_folder(version)}")


def _older_folder(version: str) -> str:
    return f"opt/sglang-{version}"


def _compile(folder: str) -> str:
    return f"python3.11 -m compileall -q -f --invalidation-mode unchecked-hash {folder}"


def apt_sources(folder: Path = Path("/etc/apt")) -> list[Path]:
    """Return this machine's own lists of Debian's packages: its mirror, not one of ours. Other lists are left out.

    Raises:
        EngineSetupError: there is none for `SUITE`.
    """
    lists = [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]
    debian = [path for path in lists if path.is_file() and {SUITE, "main"} <= set(path.read_text().split())]
    if not debian:
        raise environment.EngineSetupError(
            f"no list in {folder} names Debian's {SUITE} with its component main, and the engine images take Debian "
            f"from there: write one, such as {folder}/sources.list.d/debian.sources"
        )
    return debian


def _tar(folder: Path, root: Path, *arguments: str) -> None:
    command = ["tar", "-C", str(root), *SAME_ON_EVERY_RUN, f"--file={folder / TAR}"]
    action = [] if "--append" in arguments else ["--create"]
    run(*command, *action, *arguments, shown=f"packing {root}")
