"""The defences of one scheduler process: which hooks it has, and that they work on its real pool before it serves."""

from __future__ import annotations

import hashlib
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kvfence_engine import __version__, settings
from kvfence_engine.hooked.canaries import Canaries
from kvfence_engine.hooked.decode import DecodeHooks
from kvfence_engine.hooked.findings import Findings
from kvfence_engine.hooked.framing import FramingHooks
from kvfence_engine.hooked.frees import FreeHooks
from kvfence_engine.hooked.holders import draw
from kvfence_engine.hooked.pool import Pool
from kvfence_engine.hooked.prefill import PrefillHooks
from kvfence_engine.hooks import Hook, HookError
from kvfence_engine.integrity.modes import Mode, decode
from kvfence_engine.integrity.tags import Verdict
from kvfence_engine.integrity.tally import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kvfence_engine.alarms import Alarms
    from kvfence_engine.integrity.modes import Modes
    from kvfence_engine.state import SharedState

_PREFILL = "prefill"
_DECODE = "decode"

_OF_THE_POOL = 2
"""More than one page of so many retired is too many: until then the operator lowers the cap to what is left."""


class Integrity:
    """Of one rank. Its hooks do nothing until the scheduler is made.

    Args:
        modes: which defences are on.
        pool_uid: of the InferencePool; keys the digest of prompts that prefill and decode compare.
        state: the boot's; receipts are kept there.
        alarms: what the launcher must know at once.
        changed: called when there is something new to tell.
    """

    def __init__(
        self, modes: Modes, pool_uid: str, state: SharedState, alarms: Alarms, changed: Callable[[], None]
    ) -> None:
        self._modes = modes
        self._alarms = alarms
        self._changed = changed
        self._canaries = Canaries(state)
        self._self_test = ""
        self._role = ""
        self._pool: Pool | None = None
        self._checker: Any = None
        self._findings = Findings(lambda: self._pool, modes, alarms, changed)
        key = hashlib.blake2b(pool_uid.encode(), person=b"kvfence prompt").digest()[:32]
        self._prefill = PrefillHooks(lambda: self._pool_of(_PREFILL), self._findings, self._canaries, key)
        self._parts = (
            FramingHooks(lambda: self._pool is not None),
            FreeHooks(lambda: self._pool, self._retired),
            self._prefill,
            DecodeHooks(lambda: self._pool_of(_DECODE), self._findings, self._canaries, key),
        )

    @classmethod
    def of(
        cls, environment: Mapping[str, str], state: SharedState, alarms: Alarms, changed: Callable[[], None]
    ) -> Integrity:
        """Return what the launcher asked for.

        Raises:
            KeyError, ValueError: when it did not say.
        """
        return cls(decode(environment[settings.INTEGRITY]), environment[settings.POOL], state, alarms, changed)

    def hooks(self) -> tuple[Hook, ...]:
        """Return what is to be put in place, nothing when no defence is on."""
        return tuple(hook for part in self._parts for hook in part.hooks) if self._modes.any_on else ()

    def made(self, scheduler: Any, rank: int) -> None:
        """Begin with a scheduler that is ready: tag its pool, and see a violation caught in it.

        Args:
            scheduler: SGLang's.
            rank: its index in the engine.

        Raises:
            HookError: when a defence that is asked for cannot be had here, or does not work.
        """
        if not self._modes.any_on:
            return
        role = str(import_module("sglang.srt.runtime_context").get_disagg().disaggregation_mode)
        if role not in (_PREFILL, _DECODE):
            raise HookError(f"page tagging was not shown to hold in an engine that is neither {_PREFILL} nor {_DECODE}")
        self._findings.join(scheduler.attn_tp_cpu_group)
        self._checker = scheduler.invariant_checker
        self._role, self._pool = role, Pool(scheduler)
        _try(self._pool)
        self._self_test = "passed"
        self._canaries.begin(rank, role)
        if role == _PREFILL:
            self._prefill.prepare(int(scheduler.model_config.context_len))

    def tell(self) -> dict[str, Any]:
        """Return what this rank attests: modes and counts, nothing of any request."""
        modes = self._modes
        return {
            "version": __version__,
            "selfTest": self._self_test,
            "pageTagging": modes.page_tagging.value,
            "pageScrubbing": modes.page_scrubbing.value,
            "coverage": modes.coverage.value,
            "pages": len(self._pool.tags) - 1 if self._pool else 0,
            **self._findings.tally.as_dict(),
        }

    def lost_a_hook(self) -> None:
        """Tell that a hook is not in place any more: what came since then was looked at by nobody."""
        self._findings.note(Kind.HOOK_MISSING, 1, Mode.ENFORCE)

    def retired_tokens(self) -> int:
        """Return by how many tokens the pool is smaller than it was."""
        return self._findings.tally.pages_retired * self._pool.page_size if self._pool is not None else 0

    def _retired(self, pages: int) -> None:
        """Count them, also for SGLang, which ends an idle engine that misses a page."""
        assert self._pool is not None
        self._findings.tally.pages_retired += pages
        self._checker.max_total_num_tokens -= pages * self._pool.page_size
        self._changed()
        is_enforced = self._modes.page_scrubbing is Mode.ENFORCE
        if is_enforced and self._findings.tally.pages_retired * _OF_THE_POOL > len(self._pool.tags) - 1:
            self._alarms.isolate(Kind.TOO_MANY_RETIRED)

    def _pool_of(self, role: str) -> Pool | None:
        return self._pool if role == self._role else None


def _try(pool: Pool) -> None:
    """Do wrong on one page of the real pool, through SGLang's own allocator, and see it found each time.

    Raises:
        HookError: when it is not.
    """
    slots = pool.allocator.alloc(pool.page_size)
    page, mine, other = slots[:1] // pool.page_size, draw(), draw()
    tags = pool.tags
    tags.take(page, mine, written=False)
    seen = [int(tags.verdicts(page, mine)[0])]
    pool.zero(page)
    is_empty = bool(pool.bytes.empty(page)[0])
    tags.arrived(page, mine)
    seen += [int(tags.verdicts(page, mine)[0]), int(tags.verdicts(page, other)[0])]
    tags.take(page, other, written=True)
    twice = tags.conflicts()
    pool.allocator.free(slots)
    seen.append(int(tags.verdicts(page, mine)[0]))
    tags.take(page, mine, written=True)
    seen.append(int(tags.verdicts(page, mine)[0]))
    tags.release(page)
    wanted = [Verdict.UNWRITTEN, Verdict.FINE, Verdict.FOREIGN, Verdict.FOREIGN, Verdict.FINE]
    if seen != wanted or not is_empty or twice != 1:
        raise HookError(f"the self-test of page tagging failed: verdicts {seen}, {twice} conflicts, empty {is_empty}")
