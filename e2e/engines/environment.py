"""The Python environment in which SGLang runs on a CPU, built once and kept in the cache.

SGLang's own requirements ask for CUDA builds of several packages. The lock beside this file names what a CPU needs, and
is installed without following dependencies. Torch is chosen apart from it, since the small CPU build is not on PyPI.
"""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from e2e import cache, progress
from e2e.commands import run
from e2e.errors import StageError

VERSION = "0.5.23"
OLDER_VERSIONS = ("0.5.19",)
TORCH = "2.13.0"
SETTING = "KVFENCE_TORCH_WHEELS"

HERE = Path(__file__).resolve().parent
BESIDE_CHECKOUT = HERE.parents[2] / "shared" / "wheels"

PYTHON = "3.11"  # the one that Debian 12 has, so that the same packages work in the image


class EngineSetupError(StageError):
    """The environment cannot be made; the message says what to do about it."""


@dataclass(frozen=True)
class TorchSource:
    """Where torch is taken from."""

    options: tuple[str, ...]
    """Options of `uv pip install` that lead there."""
    identity: str
    """What tells this torch from another in the cache's key; no path, so that moving a folder rebuilds nothing."""
    seen_as: str
    """For people."""


def environment() -> Path:
    """Return the virtual environment with SGLang; builds it when there is none yet (2 to 5 min).

    It was renamed after it was built, so only `bin/python` works in it: the other scripts name a folder that is gone.

    Raises:
        EngineSetupError: with what was missing or wrong, and what to do.
    """
    source = torch_source()
    inputs: dict[str, str | Path] = {
        "lock": HERE / f"requirements-{VERSION}.txt",
        "torch": f"{TORCH} {source.identity}",
        "python": f"{PYTHON} {platform.machine()}",
        "layout": "unchecked-hash",
    }
    return cache.built("engine", inputs, lambda folder: _build(folder, source))


def older(version: str) -> Path:
    """Return a folder that turns the environment into an older SGLang when it comes first on `PYTHONPATH`.

    Raises:
        EngineSetupError: when there is no lock for `version`, or the installation fails.
    """
    if version not in OLDER_VERSIONS:
        raise EngineSetupError(f"no lock for SGLang {version}; there are {VERSION}, {', '.join(OLDER_VERSIONS)}")
    lock = HERE / f"requirements-{version}.txt"
    python = environment() / "bin" / "python"

    def build(folder: Path) -> None:
        with progress.step(f"installing SGLang {version} beside {VERSION}", "about 30 s"):
            install(python, "--target", str(folder), "--no-deps", "--require-hashes", "-r", str(lock))

    inputs: dict[str, str | Path] = {
        "lock": lock,
        "python": f"{PYTHON} {platform.machine()}",
        "layout": "unchecked-hash",
    }
    return cache.built(f"engine-{version}", inputs, build)


def torch_source() -> TorchSource:
    """Return where torch comes from: the setting, else the folder beside the checkout, else PyPI.

    Raises:
        EngineSetupError: when the setting names nothing usable.
    """
    named = os.environ.get(SETTING, "").strip()
    if named.startswith(("http://", "https://")):
        return TorchSource(("--index", named), f"index {named}", f"the index of {SETTING}")
    if named:
        return _folder_source(Path(named).expanduser().absolute(), f"the folder of {SETTING}")
    if _wheels_in(BESIDE_CHECKOUT):
        return _folder_source(BESIDE_CHECKOUT, "the folder of wheels beside the checkout")
    return TorchSource((), "pypi", "the ordinary index")


def _folder_source(folder: Path, seen_as: str) -> TorchSource:
    wheels = _wheels_in(folder)
    if not wheels:
        what = "has no such wheel" if folder.is_dir() else "is not there"
        raise EngineSetupError(
            f"{folder} {what}. {SETTING} must be a folder that holds torch-{TORCH}*-cp311-*{platform.machine()}.whl, "
            "or the URL of a package index (https://...) that has it. Unset it to take the ordinary torch (5.5 GB)."
        )
    return TorchSource(("--no-index", "--find-links", str(folder)), wheels[-1].name, seen_as)


def _wheels_in(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"torch-{TORCH}*-cp311-*{platform.machine()}.whl"))


def _build(folder: Path, source: TorchSource) -> None:
    expect = "2 to 5 min, 1.9 GB"
    if not source.options:
        expect = "5 min and more, 5.5 GB"
        progress.say(
            f"Torch {TORCH} comes from the ordinary index, with CUDA libraries that nothing here uses: 5.5 GB. To have "
            f"1.9 GB instead, set {SETTING} to a folder with the CPU wheel (torch-{TORCH}+cpu-cp311-...whl) or to the "
            "URL of an index of PyTorch's CPU builds."
        )
    with progress.step(f"installing SGLang {VERSION} with torch {TORCH} from {source.seen_as}", expect):
        _uv("venv", "--no-project", "--python", PYTHON, str(folder))
        python = folder / "bin" / "python"
        lock = HERE / f"requirements-{VERSION}.txt"
        install(python, "--no-deps", "--require-hashes", "-r", str(lock))
        # After the lock: torch's plain dependencies are met by then, and only those of its CUDA build (if any) are
        # added.
        try:
            install(python, *source.options, f"torch=={TORCH}")
        except StageError as error:
            raise EngineSetupError(f"{error}\nTorch was to come from {source.seen_as}; {SETTING} says where.") from None


def install(python: Path | str, *arguments: str) -> None:
    """Install for a Python, and compile each module so that no server or pod ever does it again.

    The compiled files are never compared with their sources (`unchecked-hash`): the usual comparison by time breaks
    when an image layer sets all times to one value, and each process then compiled all of SGLang anew.
    """
    _uv("pip", "install", "--quiet", "--python", str(python), "--compile-bytecode", *arguments)


def _uv(what: str, *arguments: str) -> None:
    """Run uv. An error names `what` and not the command, in which the address of an index may hold a password."""
    settings = {"PYC_INVALIDATION_MODE": "UNCHECKED_HASH", "UV_PYTHON_DOWNLOADS": "never"}
    run(sys.executable, "-m", "uv", what, *arguments, settings=settings, shown=f"`uv {what}`")
