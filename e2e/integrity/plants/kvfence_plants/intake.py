"""`stub`, `auto-truncate`, `tokens-differ`, `tokens-fewer`, `tokens-more`: prefill works on another prompt than decode.

Made where a scheduler bounds the answer of a request that it has just read, and before it looks at the length.

* `stub`: a one-token stand-in, as SGLang up to 0.5.19 puts it in the place of a prompt that it refuses.
* `auto-truncate`: the first `kept` tokens, as `--allow-auto-truncate` leaves them.
* `tokens-differ`: `count` tokens from `first` on are turned round: as many tokens, and others.
* `tokens-fewer`: the `count` tokens behind the one that all prompts begin with are missing, as with another template.
* `tokens-more`: they are there twice.
"""

from __future__ import annotations

from array import array
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .arming import armed, around, tell
from .known import PROMPTS

if TYPE_CHECKING:
    from collections.abc import Callable

_PREFILL = "prefill"
_STAND_IN = 0


def plant() -> None:
    """Put it into a scheduler."""
    around(import_module("sglang.srt.managers.scheduler").Scheduler, "init_req_max_new_tokens", _read)


def _read(original: Callable[..., Any], scheduler: Any, request: Any) -> Any:
    PROMPTS.keep(request.bootstrap_room, list(request.origin_input_ids))
    how = armed(request.bootstrap_room, *_OTHERS)
    if how and scheduler.disaggregation_mode.value == _PREFILL:
        request.origin_input_ids = array("q", _OTHERS[how["plant"]](list(request.origin_input_ids), how))
        tell("fired", request.bootstrap_room)
    return original(scheduler, request)


def _turned(tokens: list[int], how: dict[str, Any]) -> list[int]:
    first, end = how["first"], how["first"] + how["count"]
    return tokens[:first] + tokens[first:end][::-1] + tokens[end:]


_OTHERS: dict[str, Callable[[list[int], dict[str, Any]], list[int]]] = {
    "stub": lambda _tokens, _how: [_STAND_IN],
    "auto-truncate": lambda tokens, how: tokens[: how["kept"]],
    "tokens-differ": _turned,
    "tokens-fewer": lambda tokens, how: tokens[:1] + tokens[1 + how["count"] :],
    "tokens-more": lambda tokens, how: tokens[: 1 + how["count"]] + tokens[1:],
}
