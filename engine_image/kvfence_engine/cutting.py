"""Ends what runs in the HTTP process when this engine is tainted: what it still says may be another user's."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Coroutine


class CutError(RuntimeError):
    """The request was ended because the engine is tainted."""


class Cutter:
    """Of one HTTP process; used from its event loop alone."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self.has_cut = False
        """From then on nothing that an application says may be sent: it may still say something while it ends."""

    def cut(self) -> int:
        """End all that runs, and whatever comes after; return how many requests that were."""
        self.has_cut = True
        for task in self._running:
            task.cancel()
        return len(self._running)

    async def run(self, serving: Coroutine[object, object, None]) -> None:
        """Serve one request, in a task of its own so that it can be ended and its answer still be given.

        Raises:
            CutError: when there was a cut before it ended, in whatever way it ended then.
        """
        if self.has_cut:
            serving.close()
            raise CutError
        task = asyncio.ensure_future(serving)
        self._running.add(task)
        try:
            await task
        except (asyncio.CancelledError, Exception):
            if not self.has_cut:
                raise
        finally:
            self._running.discard(task)
        if self.has_cut:
            raise CutError
