"""Steps of a transfer at which prefill stops for good, so that the harness can kill it there.

In its scheduler, which does nothing any more from then on:

* `before-handshake`: before it asks decode where the KV of the request is to go.
* `before-forward`: decode has said so, and the prompt has its pages; nothing is computed.
* `in-forward`: its KV, or that of the first part of it, is written, and nothing is made of it.

In the thread that sends, while the scheduler goes on:

* `between-chunks`: a part that is not the last is there.
* `before-metadata`: all of the KV is there; what belongs beside it is not.
* `after-metadata`: all is there; decode is not told that it is.
"""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from .arming import armed, around, tell

if TYPE_CHECKING:
    from collections.abc import Callable

_running: list[Any] = []


def plant() -> None:
    """Put it into a scheduler."""
    prefill = import_module("sglang.srt.disaggregation.prefill")
    around(prefill.PrefillBootstrapQueue, "add", _bootstrap)
    around(import_module("sglang.srt.managers.scheduler").Scheduler, "run_batch", _run)
    around(import_module("sglang.srt.model_executor.model_runner").ModelRunner, "forward", _forward)
    mooncake = import_module("sglang.srt.disaggregation.mooncake.conn").MooncakeKVManager
    around(mooncake, "send_aux", _send_metadata)
    common = import_module("sglang.srt.disaggregation.common.conn").CommonKVManager
    around(common, "conclude_transfer", _conclude)
    around(common, "_maybe_ack_drained_abort", _sent)


def _bootstrap(original: Callable[..., Any], queue: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
    _stop_if("before-handshake", request.bootstrap_room)
    return original(queue, request, *args, **kwargs)


def _run(original: Callable[..., Any], scheduler: Any, batch: Any, *args: Any, **kwargs: Any) -> Any:
    _running[:] = batch.reqs
    for request in batch.reqs:
        _stop_if("before-forward", request.bootstrap_room)
    return original(scheduler, batch, *args, **kwargs)


def _forward(original: Callable[..., Any], runner: Any, *args: Any, **kwargs: Any) -> Any:
    computed = original(runner, *args, **kwargs)
    for request in _running:
        _stop_if("in-forward", request.bootstrap_room)
    return computed


def _send_metadata(original: Callable[..., Any], manager: Any, info: Any, *args: Any, **kwargs: Any) -> Any:
    _stop_if("before-metadata", info.room)
    return original(manager, info, *args, **kwargs)


def _conclude(original: Callable[..., Any], manager: Any, *, bootstrap_room: int, **how: Any) -> Any:
    _stop_if("after-metadata", bootstrap_room)
    return original(manager, bootstrap_room=bootstrap_room, **how)


def _sent(original: Callable[..., Any], manager: Any, room: int) -> Any:
    _stop_if("between-chunks", room)
    return original(manager, room)


def _stop_if(step: str, room: int | None) -> None:
    if armed(room, step):
        tell("fired", room)
        _stop()


def _stop() -> NoReturn:
    while True:
        time.sleep(1)
