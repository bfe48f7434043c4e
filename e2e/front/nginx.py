"""The front as a process: the rendered configuration, with other ports and folders in it and nothing else changed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from e2e.engines.processes import free_ports
from e2e.errors import StageError
from kvfence.render import front

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.1"
PROGRAM = "/usr/sbin/nginx"
USER = 65532
START_SECONDS = 10.0


@dataclass(frozen=True)
class Front:
    """A running front."""

    users_port: int
    operator_port: int
    router_port: int
    folder: Path
    """What the ConfigMap is in a pod."""
    log: Path

    def publish(self, models: str) -> None:
        """Change the list of models as the kubelet does: a new folder, and a link that is replaced."""
        write(self.folder, {front.CONF_FILE: (self.folder / front.CONF_FILE).read_text(), front.MODELS_FILE: models})


def write(folder: Path, files: dict[str, str]) -> None:
    """Fill a folder as the kubelet fills the volume of a ConfigMap."""
    version = Path(tempfile.mkdtemp(prefix="..version-", dir=folder))
    version.chmod(0o755)
    for name, text in files.items():
        (version / name).write_text(text)
    new = folder / "..new"
    new.symlink_to(version.name)
    new.replace(folder / "..data")
    for name in files:
        link = folder / name
        if not link.is_symlink():
            link.symlink_to(f"..data/{name}")


def configuration(folder: Path, users: int, operator: int, router: int) -> str:
    """Return the rendered configuration for loopback and other folders.

    Raises:
        StageError: what is to be replaced is not in it.
    """
    conf = front.nginx_conf()
    replaced = {
        f"listen {front.USERS_PORT};": f"listen {HOST}:{users};",
        f"listen {front.OPERATOR_PORT};": f"listen {HOST}:{operator};",
        f"{HOST}:{front.ROUTER_PORT}": f"{HOST}:{router}",
        f" {front.TEMPORARY_FOLDER}/": f" {folder}/tmp/",  # noqa: S108 - it was made for this run
        f" {front.CONFIG_FOLDER}/": f" {folder}/config/",
    }
    for old, new in replaced.items():
        if old not in conf:
            raise StageError(f"the front's configuration has no {old!r}: has it changed?")
        conf = conf.replace(old, new)
    return conf


@contextmanager
def running(models: str) -> Iterator[Front]:
    """Start nginx, as a user who is not root, and wait until it listens.

    Raises:
        StageError: it did not start; the message has what it said.
    """
    folder = Path(tempfile.mkdtemp(prefix="kvfence-front-"))
    try:
        folder.chmod(0o755)
        for name in ("config", "tmp"):
            (folder / name).mkdir()
        users, operator, router = free_ports(3)
        conf = configuration(folder, users, operator, router)
        write(folder / "config", {front.CONF_FILE: conf, front.MODELS_FILE: models})
        made = Front(users, operator, router, folder / "config", folder / "log")
        (folder / "tmp").chmod(0o777)
        with _process(made):
            yield made
    finally:
        shutil.rmtree(folder)


@contextmanager
def _process(made: Front) -> Iterator[None]:
    command = [PROGRAM, "-e", "stderr", "-c", str(made.folder / front.CONF_FILE)]
    user = USER if os.geteuid() == 0 else None
    with made.log.open("wb") as log:
        process = subprocess.Popen(
            command, stderr=log, user=user, group=user, extra_groups=None if user is None else []
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not all(_listens(port) for port in (made.users_port, made.operator_port)):
            if process.poll() is not None or time.monotonic() > deadline:
                raise StageError(f"nginx did not start: {made.log.read_text(errors='replace')}")
            time.sleep(0.02)
        yield
    finally:
        process.terminate()
        process.wait(START_SECONDS)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0
