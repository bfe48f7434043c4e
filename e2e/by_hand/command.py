"""The command as a user has it: the wheel in an environment of its own, with what it asks for and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from e2e import cache, progress
from e2e.commands import run, without_proxies
from e2e.engines import environment
from e2e.product.layers import CHECKOUT, build_wheel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

KEY_NAME = "KVFENCE_API_KEY"
COLUMNS = "100"
LIMIT_SECONDS = 300.0
PROJECT = CHECKOUT / "pyproject.toml"
LOCK = CHECKOUT / "requirements-dev.lock"


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    line: str
    status: int
    out: str
    err: str
    seconds: float

    @property
    def json(self) -> Any:
        """What it printed, as JSON.

        Raises:
            ValueError: it is none.
        """
        return json.loads(self.out)


@dataclass(frozen=True)
class Installed:
    """The folder with the program."""

    folder: Path

    def kvfence(self, *arguments: str, key: str = "") -> Ran:
        """Run `kvfence` with these arguments."""
        return self._run([str(self.folder / "kvfence"), *arguments], "kvfence " + " ".join(arguments), key)

    def shell(self, line: str, where: Path) -> Ran:
        """Run a line as a user types it, in a folder."""
        return self._run(["sh", "-c", line], line, where=where)

    def _run(self, command: list[str], line: str, key: str = "", where: Path | None = None) -> Ran:
        began = time.monotonic()
        done = subprocess.run(
            command, env=self._settings(key), cwd=where, capture_output=True, timeout=LIMIT_SECONDS, check=False
        )
        out, err = done.stdout.decode(), done.stderr.decode()
        return Ran(line, done.returncode, out, err, time.monotonic() - began)

    def _settings(self, key: str) -> Mapping[str, str]:
        kept = {name: value for name, value in without_proxies().items() if name in {"HOME", "LANG", "TMPDIR"}}
        path = os.pathsep.join((str(self.folder), os.environ.get("PATH", os.defpath)))
        return {**kept, "PATH": path, "COLUMNS": COLUMNS, "LC_ALL": "C.UTF-8"} | ({KEY_NAME: key} if key else {})


def asked_for() -> Path:
    """Return a folder with what the command asks for, as locked, and nothing else; installs it when it is not there."""

    def build(folder: Path) -> None:
        with progress.step("installing what kvfence asks for", "about 5 s"):
            what = ("-r", str(PROJECT), "--constraint", str(LOCK))
            environment.install(sys.executable, "--target", str(folder), "--only-binary", ":all:", *what)

    inputs: dict[str, str | Path] = {"project": PROJECT, "lock": LOCK, "python": sys.version}
    return cache.built("command", inputs, build)


def install(folder: Path) -> Installed:
    """Install this checkout's wheel into a new environment in a folder, as pipx does (3 s).

    Raises:
        StageError: it cannot be built or installed.
    """
    wheels, home = folder / "wheels", folder / "kvfence"
    wheels.mkdir()
    uv = (sys.executable, "-m", "uv")
    with progress.step("installing kvfence as a user does", "about 3 s"):
        wheel = build_wheel(CHECKOUT, wheels)
        run(*uv, "venv", "--quiet", "--no-project", "--python", sys.executable, str(home))
        environment.install(home / "bin" / "python", "--no-deps", "--offline", str(wheel))
        (packages,) = home.glob("lib/python*/site-packages")
        (packages / "asked_for.pth").write_text(f"{asked_for()}\n")
    return Installed(home / "bin")
