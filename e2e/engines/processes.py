"""Real SGLang servers as processes on loopback."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent import futures
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from e2e import progress
from e2e.cluster.programs import tail
from e2e.commands import without_proxies
from e2e.engines import environment
from e2e.engines.model import SHIM, model
from e2e.engines.servers import Place, Ports, Reached, Server, launch
from e2e.errors import StageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HOST = "127.0.0.1"
KEEPER = Path(__file__).resolve().with_name("keeper.py")
START_LIMIT_SECONDS = 300.0  # alone 15 s; five at once beside a compiler on two cores, minutes
STOP_LIMIT_SECONDS = 20.0
TAIL_LINES = 40

PORTS = range(18000, 30000)
"""Below the ports that outgoing connections take (32768 and up): one of those could be taken while the server still
imports.
"""


class ServerError(StageError):
    """A server died or did not become healthy in time; the message ends with the last lines of its log."""


@dataclass(frozen=True)
class Running(Reached):
    """A server that answers as a process of this machine."""

    log: Path
    seconds: float
    """From its start to its first healthy answer."""


@contextmanager
def running(servers: Sequence[Server], logs: Path, limit: float = START_LIMIT_SECONDS) -> Iterator[tuple[Running, ...]]:
    """Start the servers at the same time, wait until all are healthy, and stop them with all their children at the end.

    Args:
        servers: with names that differ.
        logs: an existing folder; each server's output goes to `NAME.log` in it.
        limit: seconds until all must be healthy.

    Raises:
        ServerError: when one dies or is late. All are stopped then, and the logs stay.
    """
    began = time.monotonic()
    names = ", ".join(server.name for server in servers)
    with ExitStack() as kept:
        started = [kept.enter_context(_process(server, logs)) for server in servers]
        with progress.step(f"starting SGLang: {names}", f"about {10 + 10 * len(servers)} s"):
            healthy = _wait_for_all(started, began, began + limit)
        yield healthy


def place_of(server: Server) -> Place:
    """Return where a server of this version runs on this machine; builds what is missing."""
    older = [] if server.version == environment.VERSION else [str(environment.older(server.version))]
    return Place(
        python=str(environment.environment() / "bin" / "python"),
        model=str(model()),
        import_path=(str(SHIM), *older),
        listen=HOST,
        address=HOST,
    )


@dataclass(frozen=True)
class _Started:
    server: Server
    ports: Ports
    log: Path
    process: subprocess.Popen[bytes]


@contextmanager
def _process(server: Server, logs: Path) -> Iterator[_Started]:
    ports = Ports(*free_ports(3))
    command = launch(server, place_of(server), ports)
    log = logs / f"{server.name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-I", str(KEEPER), *command.argv],
            stdin=subprocess.PIPE,  # the keeper ends the server when this closes
            stdout=output,
            stderr=subprocess.STDOUT,
            env=inherited() | command.env,
            start_new_session=True,  # Ctrl-C reaches us alone; we stop the servers
        )
    try:
        yield _Started(server, ports, log, process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(STOP_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise ServerError(f"{server.name} was not gone after {STOP_LIMIT_SECONDS:.0f} s{_tail(log)}") from None


def free_ports(count: int) -> list[int]:
    """Return ports on which nothing listens now, out of many, so that two runs at a time hardly meet."""
    found: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            break
    return found


def inherited() -> dict[str, str]:
    """Return this process's environment without what would change a server: Python's own settings, and proxies."""
    return {name: value for name, value in without_proxies().items() if not name.startswith("PYTHON")}


def _wait_for_all(started: Sequence[_Started], began: float, deadline: float) -> tuple[Running, ...]:
    give_up = threading.Event()
    with futures.ThreadPoolExecutor(len(started)) as pool:
        waiting = [pool.submit(_wait_for, one, began, deadline, give_up) for one in started]
        futures.wait(waiting, return_when=futures.FIRST_EXCEPTION)
        give_up.set()  # one failed, or all are through
    failures = [error for future in waiting if (error := future.exception()) is not None]
    for failure in sorted(failures, key=lambda error: isinstance(error, _GaveUpError)):
        raise failure
    return tuple(future.result() for future in waiting)


class _GaveUpError(Exception):
    """Another server failed; that one's error is the one to show."""


def _wait_for(one: _Started, began: float, deadline: float, give_up: threading.Event) -> Running:
    url = f"http://{HOST}:{one.ports.http}"
    while not give_up.wait(0.3):
        if one.process.poll() is not None:
            raise ServerError(f"{one.server.name} ended with status {one.process.returncode}{_tail(one.log)}")
        if time.monotonic() > deadline:
            raise ServerError(f"{one.server.name} was not healthy in time{_tail(one.log)}")
        if _is_healthy(url):
            return Running(one.server, url, HOST, one.ports.bootstrap, one.log, time.monotonic() - began)
    raise _GaveUpError


def _is_healthy(url: str) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/health", timeout=30) as answer:
            return bool(answer.status == 200)
    except OSError:  # refused, reset, timed out, or a status that is an error
        return False


def _tail(log: Path) -> str:
    return f"; the end of {log}:\n{tail(log, TAIL_LINES)}"
