"""The servers that people start by hand, right and wrong. Pure."""

from __future__ import annotations

from dataclasses import replace

from e2e.engines.environment import VERSION
from e2e.engines.servers import Role, Server

OLD = "0.5.19"
"""The version with the leak."""

CONTEXT = 4096
SMALL_POOL = 1024
"""Of prefill, a quarter of what is advertised."""

WAITING_SECONDS = 15
"""How long decode holds whoever asks for KV that does not come; the default is five minutes. More than a refusal may
take, and enough for a machine that does other work too.
"""

KEY = "key-of-a-test-and-no-secret"
"""Of the one server that asks for a key."""

METRICS = ("--enable-metrics",)
"""As most people have them on; counters tell which engines a router chose."""

ALONE = Server("alone", context_length=2048, pool_tokens=2048, extra=METRICS)
_OWN = ("--api-key", KEY, "--enable-cache-report")
"""Without the latter nobody can tell whether a salt keeps cached prompts apart."""

ALONE_SHORT = Server("alone-short", context_length=CONTEXT, pool_tokens=SMALL_POOL, extra=_OWN)


def _pair(name: str, version: str, context: int) -> tuple[Server, Server]:
    def leg(role: Role, pool: int) -> Server:
        return Server(
            f"{name}-{role.value}",
            role,
            version,
            context_length=context,
            pool_tokens=pool,
            waiting_seconds=WAITING_SECONDS,
            extra=METRICS,
        )

    return leg(Role.PREFILL, SMALL_POOL), leg(Role.DECODE, CONTEXT)


OLD_PREFILL, OLD_DECODE = _pair("old", OLD, CONTEXT)
APART_PREFILL, APART_DECODE = _pair("apart", VERSION, CONTEXT)
TRUNCATING_PREFILL = replace(APART_PREFILL, name="truncating-prefill", extra=(*METRICS, "--allow-auto-truncate"))
CAPPED_PREFILL, CAPPED_DECODE = _pair("capped", VERSION, SMALL_POOL)
SECOND_PREFILL, SECOND_DECODE = _pair("second", VERSION, SMALL_POOL)
"""Beside the capped pair, so that a router has four pairs to choose from."""

DOOR_PREFILL, DOOR_DECODE = _pair("door", VERSION, CONTEXT)
"""Behind the door of kvfence-engine: started with too much context, and capped while they run."""

DOOR_CAP = 1003
"""Of context, in tokens: what the operator would measure of these two."""
