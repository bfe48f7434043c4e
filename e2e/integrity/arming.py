"""The harness's side of the plants: says which one is armed, and reads what they tell."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).resolve().parent / "plants"
"""The folder of the plugin, to be put on `PYTHONPATH`."""

SETTING = "KVFENCE_PLANTS"
TOLD_SECONDS = 15.0


@dataclass(frozen=True)
class Plants:
    """Of one pair, which reads and writes in `folder`; see `kvfence_plants.arming`."""

    folder: Path

    @contextmanager
    def armed(self, plant: str, room: int, **more: int) -> Iterator[None]:
        """Have a plant act on the request of a room."""
        new = self.folder / "armed.json.new"
        new.write_text(json.dumps({"plant": plant, "room": room, **more}))
        armed = new.rename(self.folder / "armed.json")
        try:
            yield
        finally:
            armed.unlink()

    def let_go(self, room: int) -> None:
        """Let what is held back for a room be written."""
        (self.folder / f"go-{room}").touch()

    def told(self, event: str, room: int | None = None) -> int:
        """Return how many times a plant told this event."""
        path = self.folder / "told.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        told = [json.loads(line) for line in lines]
        return sum(1 for one in told if (one["event"], one["room"]) == (event, room))

    async def wait_for(self, event: str, room: int) -> bool:
        """Wait until a plant told this event; return whether it did in time."""
        deadline = time.monotonic() + TOLD_SECONDS
        while not self.told(event, room):
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.01)
        return True
