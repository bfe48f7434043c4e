"""Real routers as processes on loopback: smg, and sglang-router, which was there before it."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from e2e import cache, progress
from e2e.cluster.programs import tail
from e2e.engines import environment
from e2e.engines.processes import HOST, KEEPER, free_ports, inherited
from e2e.engines.servers import Role
from e2e.errors import StageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from e2e.engines.processes import Running

HERE = Path(__file__).resolve().parent
START_SECONDS = 60.0
STOP_SECONDS = 10.0


class Router(StrEnum):
    """Which one; the names are those of the packages."""

    SMG = "smg"
    SGLANG_ROUTER = "sglang-router"


_LOCKS = {
    Router.SMG: HERE.parents[1] / "operator" / "router-requirements.txt",
    Router.SGLANG_ROUTER: HERE / "requirements-sglang-router.txt",
}
_PROGRAMS = {
    Router.SMG: ("-c", "import sys; from smg.cli import main; sys.exit(main())", "launch"),
    Router.SGLANG_ROUTER: ("-m", "sglang_router.launch_router"),
}


@dataclass(frozen=True)
class Routing:
    """A router that can use its engines."""

    router: Router
    url: str
    log: Path

    @property
    def version(self) -> str:
        """As its lock has it."""
        (pinned,) = re.findall(rf"^{self.router.value}==(\S+)", _LOCKS[self.router].read_text(), re.MULTILINE)
        return str(pinned)


@contextmanager
def routing(router: Router, engines: Sequence[Running], logs: Path) -> Iterator[Routing]:
    """Start a router as its manual says, without any key, and wait until it can use an engine of each role.

    Raises:
        StageError: it ended or is late; the message has the end of its log.
    """
    port, metrics = free_ports(2)
    log = logs / f"{router.value}.log"
    command = [
        *(str(environment.environment() / "bin" / "python"), *_PROGRAMS[router]),
        *("--pd-disaggregation", "--host", HOST, "--port", str(port), "--policy", "round_robin"),
        *("--prometheus-host", HOST, "--prometheus-port", str(metrics)),
        *(argument for engine in engines for argument in _worker(engine)),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-I", str(KEEPER), *command],
            stdin=subprocess.PIPE,  # the keeper ends the router when this closes
            stdout=output,
            stderr=subprocess.STDOUT,
            env=inherited() | {"PYTHONPATH": str(packages(router))},
            start_new_session=True,
        )
    try:
        with progress.step(f"starting {router.value}", "about 5 s"):
            _wait_until_ready(f"http://{HOST}:{port}", process, log)
        yield Routing(router, f"http://{HOST}:{port}", log)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(STOP_SECONDS)


def packages(router: Router) -> Path:
    """Return a folder with the router for the Python of the engines; installs it when it is not there."""
    lock = _LOCKS[router]
    python = environment.environment() / "bin" / "python"

    def build(folder: Path) -> None:
        with progress.step(f"installing {router.value}", "about 10 s"):
            target = ("--target", str(folder), "--no-deps", "--only-binary", ":all:")
            environment.install(python, *target, "--require-hashes", "-r", str(lock))

    return cache.built(router.value, {"lock": lock, "python": environment.PYTHON}, build)


def _worker(engine: Running) -> tuple[str, ...]:
    if engine.server.role is Role.PREFILL:
        return "--prefill", engine.url, str(engine.bootstrap_port)
    return "--decode", engine.url


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with opener.open(f"{url}/readiness", timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:  # not up, or not ready: 503
            pass
        if process.poll() is not None or time.monotonic() > deadline:
            raise StageError(f"the router did not come up; the end of {log}:\n{tail(log, 30)}")
        time.sleep(0.2)
