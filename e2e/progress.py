"""Say what a long step is doing, on standard error, with the time that it has taken so far."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HEARTBEAT_SECONDS = 15.0


def say(text: str) -> None:
    """Write one line at once: a CI log and a terminal both show it while the step still runs."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def clock(seconds: float) -> str:
    """Return a duration as people read it: `4.2 s` below a minute, `3:07` (minutes and seconds) above."""
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


@contextmanager
def step(what: str, expect: str = "") -> Iterator[None]:
    """Announce `what`, repeat it with the elapsed time every 15 s while it runs, and say how long it took.

    Args:
        what: the step, as a phrase that goes on from "building ...".
        expect: what a person should be ready for, such as "about 11 min the first time".
    """
    began = time.monotonic()
    over = threading.Event()

    def heartbeat() -> None:
        while not over.wait(HEARTBEAT_SECONDS):
            say(f"    ... {what}, {clock(time.monotonic() - began)} so far")

    say(f"==> {what}" + (f" ({expect})" if expect else ""))
    teller = threading.Thread(target=heartbeat, daemon=True)
    teller.start()
    try:
        yield
    except BaseException:
        say(f"!!! {what} failed after {clock(time.monotonic() - began)}")
        raise
    else:
        say(f"    {what}: {clock(time.monotonic() - began)}")
    finally:
        over.set()
        teller.join()
