"""An event loop whose clock jumps to the next timer whenever nothing else is left to do: hours cost nothing."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")
Ready = list[tuple[selectors.SelectorKey, int]]


class _Jumping(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> Ready:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        assert timeout is not None, "everything waits, and nothing will ever happen"
        self.now += timeout
        return super().select(0)


class VirtualTime(asyncio.SelectorEventLoop):
    """Its `time()` begins at 0."""

    def __init__(self) -> None:
        self._clock = _Jumping()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end, in no time; what a timer or a lost task raises is raised here."""
    lost: list[dict[str, Any]] = []
    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        runner.get_loop().set_exception_handler(lambda _, context: lost.append(context))
        result = runner.run(coroutine)
    assert lost == []
    return result


def now() -> float:
    """Return the time of the running loop."""
    return asyncio.get_running_loop().time()
