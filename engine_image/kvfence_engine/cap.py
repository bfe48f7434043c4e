"""Applies a cap to a running engine: which attributes of SGLang 0.5.23 are limits, in which process.

Left alone: what is a size rather than a limit, such as the width of `req_to_token`, CUDA graphs, and the bounds that
the disaggregation queues took from the pool.
"""

from __future__ import annotations

from typing import Any

from kvfence_engine import limits
from kvfence_engine.key_material import strike

EPOCH_KEY = "kvfence_epoch"
CAP_KEY = "kvfence_cap"
"""Of the message `SetInternalStateReq`, which takes numbers alone. SGLang hands it to all ranks in order with requests,
so that ranks which compute one request together change their limits at the same place.
"""


class TokenizerCap:
    """The limits of the HTTP process.

    Args:
        manager: SGLang's `TokenizerManager`.
        scheduler_info: what the ranks reported when they started; shown in `/server_info`.
    """

    def __init__(self, manager: Any, scheduler_info: dict[str, Any]) -> None:
        self._manager = manager
        self._info = scheduler_info
        self._context = int(manager.context_len)
        self._input_limit = int(manager.max_req_input_len)
        self._cap = self._context

    def apply(self, cap: int) -> None:
        """Lower, or set back towards what the engine started with, what is checked and what is told."""
        self._cap = min(cap, self._context)
        self._manager.context_len = self._cap  # checked; a copy that the manager made for itself
        self._manager.model_config.context_len = self._cap  # told by `/v1/models`
        self._manager.max_req_input_len = limits.input_limit(self._cap, self._input_limit)
        self._info["max_req_input_len"] = self._manager.max_req_input_len

    def longest_prompt(self) -> int:
        """Return how many tokens the longest prompt has that is taken now."""
        return limits.longest_prompt(self._cap, self._input_limit)

    def tokens(self, input_ids: list[int] | None) -> int:
        """Return how many tokens SGLang counts for a prompt."""
        return len(input_ids or ()) + int(self._manager.num_reserved_tokens)

    def tell(self, info: dict[str, Any]) -> None:
        """Correct what `/server_info` is about to say; the engine's arguments themselves are frozen."""
        info["context_length"] = self._cap
        strike(info)


class SchedulerCap:
    """The limits of one rank.

    Args:
        scheduler: SGLang's `Scheduler`, ready to run.
    """

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler
        self._request_limit = int(scheduler.max_req_len)
        self._input_limit = int(scheduler.max_req_input_len)
        self._cap = 0

    def apply(self, cap: int) -> None:
        """Change what this rank checks."""
        self._cap = cap
        self._scheduler.max_req_len = limits.request_limit(cap, self._request_limit)
        self._scheduler.max_req_input_len = limits.input_limit(cap, self._input_limit)
        self._scheduler.beam_coordinator.max_req_len = self._scheduler.max_req_len  # a copy

    def tell(self, info: dict[str, Any]) -> None:
        """Correct what this rank is about to say in `internal_states` of `/server_info`."""
        if self._cap:
            info["context_length"] = min(self._cap, info.get("context_length") or self._cap)
        strike(info)
