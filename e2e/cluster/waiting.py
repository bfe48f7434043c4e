"""Wait for something to become true, and say what it was when it does not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from e2e.errors import StageError

if TYPE_CHECKING:
    from collections.abc import Callable


def wait_for(what: str, condition: Callable[[], bool], seconds: float, every: float = 0.1) -> None:
    """Ask `condition` until it holds.

    Args:
        what: completes "waited N s for ...".
        condition: may raise to end the waiting at once.
        seconds: how long at most.
        every: pause between two questions, in seconds.

    Raises:
        StageError: it did not hold in time.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise StageError(f"waited {seconds:.0f} s for {what}")
        time.sleep(every)
