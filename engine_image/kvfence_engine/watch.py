"""The launcher's watch over what the ranks find: it blows the fuse, whatever the busy engine does meanwhile."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from kvfence_engine.faults import give_up
from kvfence_engine.fuse import Trip
from kvfence_engine.integrity.classes import Finding
from kvfence_engine.memory import TornError
from kvfence_engine.state import MAX_RANKS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvfence_engine.doorkeeper import Doorkeeper
    from kvfence_engine.fuse import Fuse
    from kvfence_engine.state import SharedState

WHO = "launcher"
LOOK_SECONDS = 0.02
"""Between looks; one reads some hundred bytes for each rank."""
TOLD_SECONDS = 5.0
"""How long an engine that has ended waits for its partners to take what they are told."""
UNREADABLE = "UnreadableAlarm"
"""Kind of what is found where a rank's own word cannot be read. Whether anything escaped there cannot be known."""


class Watch:
    """Of one boot.

    Args:
        state: the boot's.
        fuse: decides.
        keeper: shuts the door.
        tell: begins to say to the partners that something escaped here, and returns the threads that do.
    """

    def __init__(
        self, state: SharedState, fuse: Fuse, keeper: Doorkeeper, tell: Callable[[Trip], list[threading.Thread]]
    ) -> None:
        self._state = state
        self._fuse = fuse
        self._keeper = keeper
        self._tell = tell
        self._looking = threading.Lock()
        self._telling: list[threading.Thread] = []
        self._has_escaped = False

    def start(self) -> None:
        """Look from now on, in a thread of its own. An engine that nobody watches ends."""
        threading.Thread(target=self._run, name="watch", daemon=True).start()

    def look(self, now: float) -> bool:
        """Look once; return whether something has escaped here, after which there is nothing more to look for.

        What was contained closes the door, and what runs goes on and may still escape. Nor does a partner's word end
        the watch: other partners are to hear of what escaped here.

        Args:
            now: seconds of a clock that never steps back.
        """
        with self._looking:
            for index in range(self._ranks()):
                trip = None if self._has_escaped else self._see(now, index)
                if trip is None:
                    continue
                self._keeper.blow(trip.finding, trip.kind, f"rank {index}")
                if trip.finding is Finding.ESCAPED:
                    self._has_escaped = True
                    self._telling = self._tell(trip)
            return self._has_escaped

    def end(self) -> None:
        """Look for the last time, when the engine has ended, and let the partners hear of it."""
        self.look(time.monotonic())
        deadline = time.monotonic() + TOLD_SECONDS
        for thread in self._telling:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _run(self) -> None:
        try:
            while not self.look(time.monotonic()):
                time.sleep(LOOK_SECONDS)
        except Exception as error:  # noqa: BLE001 - whatever it is, the engine must not serve; it ends with its launcher
            give_up(None, WHO, f"the watch over the ranks failed: {type(error).__name__}: {error}")

    def _ranks(self) -> int:
        """Return how many ranks may have found something; none before the engine has said how many there are."""
        server = self._state.server()
        return min(server.ranks, MAX_RANKS) if server else 0

    def _see(self, now: float, index: int) -> Trip | None:
        try:
            return self._fuse.see(now, index, self._state.alarm(index))
        except (TornError, ValueError, TypeError):  # one that cannot be read must not hide what the others say
            return Trip(Finding.CONTAINED, UNREADABLE, "")
