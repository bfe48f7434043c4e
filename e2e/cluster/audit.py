"""Count what was asked of the API server, from its audit log."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from e2e.errors import StageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True)
class Request:
    """One request, as the API server logged it when it had answered."""

    user: str
    verb: str
    resource: str
    namespace: str
    name: str

    @property
    def is_write(self) -> bool:
        """Whether it may have changed something."""
        return self.verb in WRITES


@dataclass(frozen=True, slots=True)
class AuditLog:
    """The log of a stage whose `audit` switch is on. An answered request is in it: the server waits for the write."""

    path: Path

    def position(self) -> int:
        """Where the log ends now, for `since`."""
        return self.path.stat().st_size

    def since(self, position: int) -> Iterator[Request]:
        """The requests that were answered after `position`.

        Raises:
            StageError: the log is shorter than that.
        """
        if position > self.position():
            raise StageError(f"{self.path} ends before byte {position}: it was begun anew, and counts nothing")
        with self.path.open("rb") as log:
            log.seek(position)
            for line in log:
                if not line.endswith(b"\n"):  # still being written: its request has not been answered
                    return
                event: dict[str, Any] = json.loads(line)
                about = event.get("objectRef", {})
                yield Request(
                    user=event["user"].get("username", ""),
                    verb=event["verb"],
                    resource=about.get("resource", ""),
                    namespace=about.get("namespace", ""),
                    name=about.get("name", ""),
                )
