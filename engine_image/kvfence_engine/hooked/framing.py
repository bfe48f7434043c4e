"""Keeps apart in the prefix cache, and in the digests of prompts, what SGLang joins to one text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvfence_engine.hooks import Hook, Kind
from kvfence_engine.integrity.content import framed_extra_key, namespace

if TYPE_CHECKING:
    from collections.abc import Callable


class FramingHooks:
    """Of one rank, on both roles: what they compare is framed on both or on neither.

    Args:
        is_on: whether the scheduler is ready, and requests are those of users.
    """

    def __init__(self, is_on: Callable[[], bool]) -> None:
        self._is_on = is_on
        self.hooks = (Hook("sglang.srt.managers.schedule_batch.Req.__init__", Kind.AFTER, self._made),)

    def _made(self, _result: None, request: Any, *_: Any, **__: Any) -> None:
        if self._is_on():
            request.extra_key = framed_extra_key(request.extra_key, request.lora_id)


def namespace_of(request: Any) -> bytes:
    """Return what a request of SGLang's shares its KV within."""
    return namespace(request.extra_key, request.cache_salt, request.lora_id)
