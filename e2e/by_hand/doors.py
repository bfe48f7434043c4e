"""Servers with kvfence-engine, whose doors stand open: what a pool of the operator is to its users."""

from __future__ import annotations

import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from e2e.by_hand.cast import DOOR_CAP
from e2e.door.engines import HOST, Injection, started
from e2e.engines.processes import Running
from e2e.engines.servers import Role
from e2e.errors import StageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from e2e.engines.servers import Server


@contextmanager
def running(servers: Sequence[Server], logs: Path) -> Iterator[tuple[Running, ...]]:
    """Start the servers behind their doors, and admit them with the cap that fits all.

    Raises:
        StageError: a door does not take the admission.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kvfence-by-hand-") as folder:
        injection = Injection.build(Path(folder))
        with started(injection, logs, *servers) as engines:
            peers = tuple(engine.peer for engine in engines if engine.server.role is Role.PREFILL)
            for engine in engines:
                said = engine.admit(cap=DOOR_CAP, peers=peers)
                if said.status != 200:
                    raise StageError(f"the door of {engine.server.name} took no admission: {said.text}")
            seconds = time.monotonic() - began
            yield tuple(
                Running(
                    engine.server,
                    f"http://{HOST}:{engine.ports.http}",
                    HOST,
                    engine.ports.bootstrap,
                    engine.log,
                    seconds,
                )
                for engine in engines
            )
