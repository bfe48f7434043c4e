"""`other-metadata`: prefill sends what belongs beside another's KV (`other`) beside that of the request.

Its first token, counts and all spare words, as when two slots are exchanged; only the word of the room itself, at which
SGLang looks, is the request's own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .arming import armed, around, tell
from .known import Rooms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SENT = Rooms()
_buffers: list[Any] = []


def plant() -> None:
    """Put it into a scheduler."""
    around(import_module("sglang.srt.disaggregation.utils").MetadataBuffers, "__init__", _made)
    mooncake = import_module("sglang.srt.disaggregation.mooncake.conn").MooncakeKVManager
    around(mooncake, "add_transfer_request", _send)


def _made(original: Callable[..., Any], buffers: Any, *args: Any, **kwargs: Any) -> None:
    original(buffers, *args, **kwargs)
    _buffers[:] = [buffers]


def _send(original: Callable[..., Any], manager: Any, room: int, *args: Any, **kwargs: Any) -> Any:
    slot = kwargs.get("aux_index")
    if slot is not None and _buffers:
        how = armed(room, "other-metadata")
        others = _SENT.of(how["other"]) if how else None
        if others:
            for mine, theirs in zip(_rows(slot), others, strict=True):
                mine.copy_(theirs)
            tell("fired", room)
        else:
            _SENT.keep(room, [row.clone() for row in _rows(slot)])
    return original(manager, room, *args, **kwargs)


def _rows(slot: int) -> Iterator[Any]:
    for name, buffer in sorted(vars(_buffers[0]).items()):
        if hasattr(buffer, "data_ptr"):
            yield buffer[slot, 1:] if name == "bootstrap_room" else buffer[slot]
