"""The HTTP process follows the launcher: what escaped ends what runs, and what was contained does not."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from kvfence_engine import serving
from kvfence_engine.cutting import CutError, Cutter
from kvfence_engine.serving import Serving
from kvfence_engine.state import Blown, Door, Grant, SharedState


@dataclass
class Manager:
    """Stands in for SGLang's: notes what it is told to abort."""

    aborted: list[bool] = field(default_factory=list)

    def abort_request(self, *, abort_all: bool) -> None:
        self.aborted.append(abort_all)


@dataclass
class Process:
    """What of the HTTP process looks after a taint; the rest of it needs SGLang."""

    _state: SharedState = field(default_factory=SharedState.create)
    _cutter: Cutter = field(default_factory=Cutter)
    _manager: Manager = field(default_factory=Manager)

    def taint(self, finding: str) -> None:
        self._state.set_grant(Grant(Door.TAINTED, 1, 100, blown=Blown(finding, "ForeignPage", "rank 0", 1.5)))


async def serve() -> None:
    await asyncio.Event().wait()


async def played(process: Process) -> tuple[bool, bool, list[bool], bool]:
    """Return whether a request ran on after Contained, was cut within a second by Escaped, and what else was done."""
    running = asyncio.create_task(process._cutter.run(serve()))
    guard = asyncio.create_task(Serving._guard(cast("Any", process)))
    process.taint("Contained")
    await asyncio.sleep(3 * serving.LOOK_SECONDS)
    went_on = not running.done() and not process._manager.aborted
    process.taint("Escaped")
    await asyncio.wait([running], timeout=1)
    await asyncio.sleep(0)
    was_cut = running.done() and isinstance(running.exception(), CutError)
    watches_on = not guard.done()
    for task in (guard, running):
        task.cancel()
        with suppress(asyncio.CancelledError, CutError):
            await task
    return went_on, was_cut, process._manager.aborted, watches_on


def test_what_escaped_ends_what_runs_and_what_was_contained_does_not() -> None:
    went_on, was_cut, aborted, watches_on = asyncio.run(played(Process()))
    assert went_on
    assert was_cut
    assert aborted == [True]
    assert watches_on, "a guard that ends takes the process with it"
