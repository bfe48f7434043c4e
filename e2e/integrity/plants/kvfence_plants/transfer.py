"""`lost-page`, `late-write`: what prefill takes for sent is not there, or comes when it is not wanted any more.

* `lost-page`: the pages of the tokens from `first` on, as many as `count` tokens fill, are left out of the transfer.
* `late-write`: the transfer of the request hangs until decode gives it up, and is not acknowledged as drained, so that
  decode's deferred release times out. The bytes are written when the harness says so.
"""

from __future__ import annotations

import threading
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .arming import armed, around, may_go, tell

if TYPE_CHECKING:
    from collections.abc import Callable

HANG_SECONDS = 20.0
LOOK_SECONDS = 0.01

_held: dict[str, int] = {}
"""Rooms whose next transfer to a session hangs, by session."""

_early: dict[int, tuple[Any, slice]] = {}
"""What was to be sent first of a room whose transfer hangs: pages, and where they go."""

_undrained: set[int] = set()


def plant() -> None:
    """Put it into a scheduler."""
    mooncake = import_module("sglang.srt.disaggregation.mooncake.conn").MooncakeKVManager
    around(mooncake, "add_transfer_request", _add)
    around(mooncake, "send_kvcache", _send)
    common = import_module("sglang.srt.disaggregation.common.conn").CommonKVManager
    around(common, "_maybe_ack_drained_abort", _ack)
    around(common, "clear_deferred_abort_state", _released)


def _add(
    original: Callable[..., Any],
    manager: Any,
    room: int,
    pages: Any,
    where: slice,
    is_last: bool,
    **kwargs: Any,
) -> Any:
    if armed(room, "late-write"):
        if not is_last:  # what was in the prefix cache; it goes with the rest
            _early[room] = (pages, where)
            return None
        if room in _early:
            early, at = _early.pop(room)
            pages, where = import_module("numpy").concatenate((early, pages)), slice(at.start, where.stop)
        _undrained.add(room)
        for session in manager.transfer_infos.get(room, {}):
            _held[session] = room
    how = armed(room, "lost-page")
    if how is None:
        return original(manager, room, pages, where, is_last, **kwargs)
    size = manager.kv_args.page_size
    first, end = (max(0, at // size - where.start) for at in (how["first"], how["first"] + how["count"]))
    if end >= len(pages):  # an earlier part, with what was in the prefix cache
        return original(manager, room, pages, where, is_last, **kwargs)
    original(manager, room, pages[:first], slice(where.start, where.start + first), False)
    tell("fired", room)
    return original(manager, room, pages[end:], slice(where.start + end, where.stop), is_last, **kwargs)


def _send(original: Callable[..., Any], manager: Any, session: str, *args: Any, **kwargs: Any) -> Any:
    room = _held.pop(session, None)
    if room is None:
        return original(manager, session, *args, **kwargs)
    failed = import_module("sglang.srt.disaggregation.base.conn").KVPoll.Failed
    deadline = time.monotonic() + HANG_SECONDS
    while manager.request_status.get(room, failed) != failed and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)

    def write() -> None:
        while not may_go(room):
            time.sleep(LOOK_SECONDS)
        original(manager, session, *args, **kwargs)
        tell("fired", room)

    threading.Thread(target=write, daemon=True).start()
    return 0


def _released(original: Callable[..., Any], manager: Any, room: int) -> None:
    original(manager, room)
    tell("released", room)


def _ack(original: Callable[..., Any], manager: Any, room: int) -> None:
    if room not in _undrained:
        original(manager, room)
