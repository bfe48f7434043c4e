"""The part in a scheduler process: it measures the KV pool, applies the cap, and has the defences of the KV in it."""

from __future__ import annotations

import os
import secrets
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kvfence_engine import limits, sources
from kvfence_engine.alarms import Alarms
from kvfence_engine.cap import CAP_KEY, EPOCH_KEY, SchedulerCap
from kvfence_engine.faults import give_up
from kvfence_engine.hooked.integrity import Integrity
from kvfence_engine.hooks import Hook, HookError, Hooks, Kind
from kvfence_engine.memory import TornError
from kvfence_engine.state import Alarm, Rank, SharedState

if TYPE_CHECKING:
    from collections.abc import Callable

WHO = "scheduler"
_SCHEDULER = "sglang.srt.managers.scheduler.Scheduler"
_PARTS = (
    "token_to_kv_pool_allocator",
    "disagg_metadata_buffers",
    "disagg_decode_prealloc_queue",
    "disagg_decode_transfer_queue",
)
"""Attributes of the scheduler with hooked methods."""


class Ranked:
    """What this rank knows. Made before SGLang's scheduler; complete once that has its final pool."""

    def __init__(self, state: SharedState) -> None:
        self._state = state
        self._index = 0
        self._pool_tokens = 0
        self._integrity = Integrity.of(os.environ, state, Alarms(self._sound), self._changed)
        self._cap: SchedulerCap | None = None
        self._rank: Rank | None = None
        self._hooks = Hooks(
            (
                Hook(f"{_SCHEDULER}.__init__", Kind.AFTER, self._made),
                Hook(f"{_SCHEDULER}.set_internal_state", Kind.AROUND, self._set),
                Hook(f"{_SCHEDULER}.get_internal_state", Kind.AFTER, self._tell),
                *self._integrity.hooks(),
            ),
            sources.OF_0_5_23,
        )

    def _made(self, _result: None, scheduler: Any, *_: Any, **__: Any) -> None:
        """Say what this rank is: its pool has its last size, and it has told nobody yet that it is ready."""
        try:
            self._hooks.check(scheduler, *(getattr(scheduler, name, None) for name in _PARTS))
            self._index = _index(import_module("sglang.srt.runtime_context").get_parallel())
            self._integrity.made(scheduler, self._index)
        except HookError as error:
            give_up(self._state, WHO, str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, this engine is not the one that was proven
            give_up(self._state, WHO, f"the defences cannot be put in place: {type(error).__name__}: {error}")
        self._cap = SchedulerCap(scheduler)
        self._pool_tokens = int(scheduler.tp_worker.model_runner.effective_logical_max_total_num_tokens)
        self._rank = Rank(
            index=self._index,
            pid=os.getpid(),
            nonce=secrets.token_hex(16),
            pool_tokens=self._pool_tokens,
            page_size=int(scheduler.page_size),
            boot_input_limit=int(scheduler.max_req_input_len),
            input_limit=int(scheduler.max_req_input_len),
            integrity=self._integrity.tell(),
        )
        self._state.set_rank(self._rank)

    def _set(self, original: Callable[..., Any], scheduler: Any, request: Any) -> Any:
        """Take our own message; hand any other on. An older epoch than the last is refused."""
        values = request.server_args
        if EPOCH_KEY not in values:
            return original(scheduler, request)
        assert self._cap is not None
        assert self._rank is not None
        epoch = int(values[EPOCH_KEY])
        is_newer = epoch > self._rank.epoch
        if is_newer:
            self._cap.apply(int(values[CAP_KEY]))
            self._rank = replace(self._rank, epoch=epoch, input_limit=int(scheduler.max_req_input_len))
            self._state.set_rank(self._rank)
        return import_module("sglang.srt.managers.io_struct").SetInternalStateReqOutput(updated=is_newer)

    def _tell(self, answer: Any, scheduler: Any, *_: Any, **__: Any) -> None:
        """Attest: every rank of a replica comes here when the server asks, and one of them answers."""
        if self._cap is None or self._rank is None:
            return
        try:
            self._hooks.check(scheduler, *(getattr(scheduler, name, None) for name in _PARTS))
        except HookError:
            self._integrity.lost_a_hook()
        try:
            server = self._state.server()
        except (TornError, ValueError, TypeError):
            server = None  # nobody's nonce is repeated then, which the asker takes for no evidence
        self._rank = replace(self._rank, attested=server.asked if server else ())
        self._changed()
        self._cap.tell(answer.internal_state)
        answer.internal_state["kvfence"] = {
            **self._integrity.tell(),
            "rank": self._rank.index,
            "nonce": self._rank.nonce,
            "attested": list(self._rank.attested),
        }

    def _sound(self, alarm: Alarm) -> None:
        self._state.set_alarm(self._index, alarm)

    def _changed(self) -> None:
        """Have the launcher say what the defences count, and what is left of the pool."""
        if self._rank is not None:
            left = self._pool_tokens - self._integrity.retired_tokens()
            self._rank = replace(
                self._rank,
                pool_tokens=left,
                boot_input_limit=min(self._rank.boot_input_limit, limits.input_limit(left, left)),
                integrity=self._integrity.tell(),
            )
            self._state.set_rank(self._rank)


def _index(parallel: Any) -> int:
    """Number the ranks of an engine from 0: replicas of pure data parallelism have the other numbers each anew."""
    replica = 0 if parallel.attn_dp_enabled else int(parallel.dp_rank or 0)
    return int((replica * parallel.pp_size + parallel.pp_rank) * parallel.tp_size + parallel.tp_rank)
