"""`fake-host`: the door's look at the fields of a pair is taken out, so that a client may name the fake transfer."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .arming import armed, around, tell

if TYPE_CHECKING:
    from collections.abc import Callable


def plant() -> None:
    """Put it into the process that serves HTTP."""
    around(import_module("kvfence_engine.requests"), "_judge_pair", _judge)


def _judge(original: Callable[..., Any], fields: Any, leg: Any) -> Any:
    room = fields.get("bootstrap_room")
    if armed(room, "fake-host"):
        tell("fired", room)
        return None
    return original(fields, leg)
