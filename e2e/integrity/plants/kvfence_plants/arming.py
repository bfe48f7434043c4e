"""Which plant is armed, told by a file of the harness, and what the plants tell it in another.

Both lie in the folder that `KVFENCE_PLANTS` names. `armed.json` holds one object with `plant`, its name, `room`, the
bootstrap room of the request on which it acts, and what else the plant needs. `told.jsonl` gets one object for each
thing that happened.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = "KVFENCE_PLANTS"

_fired: set[tuple[str, int]] = set()


def armed(room: int | None, *names: str) -> dict[str, Any] | None:
    """Return how a plant of one of these names is armed for the request of this room; none when it is not."""
    try:
        found: dict[str, Any] = json.loads((_folder() / "armed.json").read_text())
    except FileNotFoundError:
        return None
    return found if found["plant"] in names and found["room"] == room else None


def tell(event: str, room: int | None = None) -> None:
    """Let the harness know; "fired" once for each request."""
    if event == "fired" and room is not None:
        if (event, room) in _fired:
            return
        _fired.add((event, room))
    line = json.dumps({"event": event, "room": room, "pid": os.getpid()}) + "\n"
    with (_folder() / "told.jsonl").open("a") as told:
        told.write(line)


def may_go(room: int) -> bool:
    """Whether the harness lets go what was held back for a room."""
    return (_folder() / f"go-{room}").exists()


def around(owner: Any, name: str, function: Callable[..., Any]) -> None:
    """Have `function(original, *args, **kwargs)` called in the place of an attribute of a class or module."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return function(original, *args, **kwargs)

    setattr(owner, name, wrapped)


def _folder() -> Path:
    return Path(os.environ[FOLDER])
