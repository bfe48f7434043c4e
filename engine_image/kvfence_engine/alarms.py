"""What a rank tells the launcher at once: the findings that say something about the engine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kvfence_engine.integrity.classes import Finding
from kvfence_engine.state import Alarm

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvfence_engine.integrity.tally import Kind


class Alarms:
    """Of one rank.

    Args:
        write: puts the newest alarm where the launcher looks.
    """

    def __init__(self, write: Callable[[Alarm], None]) -> None:
        self._write = write
        self._alarm = Alarm()

    def sound(self, finding: Finding, kind: Kind, peer: str = "") -> None:
        """Tell of a finding. What a client or a lost peer brought about says nothing about the engine.

        Args:
            finding: its class.
            kind: what it is.
            peer: `host:port` of the prefill engine whose KV it was found in; empty when that is not known.
        """
        alarm = self._alarm
        if finding is Finding.CONTAINED:
            self._tell(replace(alarm, contained=alarm.contained + 1, kind=kind.value))
        elif finding is Finding.ESCAPED and not alarm.escaped:
            self._tell(replace(alarm, escaped=kind.value, peer=peer))

    def isolate(self, kind: Kind) -> None:
        """Tell of what closes the engine at once although nothing escaped."""
        if not self._alarm.isolated:
            self._tell(replace(self._alarm, isolated=kind.value))

    def _tell(self, alarm: Alarm) -> None:
        self._alarm = alarm
        self._write(alarm)
