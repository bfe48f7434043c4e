"""`foreign-prefix`: prefill's prefix cache takes the first `count` tokens of a prompt for those of another (`other`).

As when two keys are equal that must not be: the pages are really in the tree, and locked, under the other's key.
"""

from __future__ import annotations

import dataclasses
from array import array
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .arming import armed, around, tell
from .known import PROMPTS

if TYPE_CHECKING:
    from collections.abc import Callable


def plant() -> None:
    """Put it into a scheduler."""
    around(import_module("sglang.srt.mem_cache.unified_radix_cache").UnifiedRadixCache, "_match_tree", _match)


def _match(original: Callable[..., Any], tree: Any, params: Any) -> Any:
    request = params.req
    how = armed(request.bootstrap_room, "foreign-prefix") if request is not None else None
    others = PROMPTS.of(how["other"]) if how else None
    if how is None or others is None or tree.disable:
        return original(tree, params)
    count = how["count"]
    tokens = others[:count] + list(params.key.token_ids)[count:]
    keys = import_module("sglang.srt.mem_cache.radix_cache")
    taken = original(tree, dataclasses.replace(params, key=keys.RadixKey(array("q", tokens), limit=params.key.limit)))
    request.skip_radix_cache_insert = True  # else the tree would own the pages twice, and free them twice
    if taken.device_prefix_len >= count:
        tell("fired", request.bootstrap_room)
    return taken
