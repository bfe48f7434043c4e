"""The servers that the incident is played on, and which of them are a pair. The same as processes and as pods."""

from __future__ import annotations

from dataclasses import dataclass

from e2e.engines.environment import VERSION
from e2e.engines.servers import Role, Server

CONTEXT = 4096
PREFILL_POOL = 1024
"""A quarter of the advertised context: a prompt of 1,100 tokens is accepted and does not fit."""

WAITING_SECONDS = 5
"""Of the pairs without the leak: how long decode hangs. The default, 300, would hold every asker for five minutes."""


@dataclass(frozen=True)
class Scene:
    """One pair and what user B asks it."""

    title: str
    prefill: Server
    decode: Server
    lengths: tuple[int, ...]
    """Of B's prompts, in tokens: each more than prefill holds, less than the context."""
    kept: int | None = None
    """How many tokens of a prompt prefill keeps, where it cuts them; B's prompts then break off there."""
    users: int = 8
    """How many users A leave a marker first; none where decode's pages are full of the markers of the scene before."""


def _prefill(name: str, version: str, *extra: str) -> Server:
    return Server(
        name,
        Role.PREFILL,
        version,
        context_length=CONTEXT,
        pool_tokens=PREFILL_POOL,
        waiting_seconds=WAITING_SECONDS,
        extra=extra,
    )


def _decode(name: str, version: str) -> Server:
    return Server(
        name, Role.DECODE, version, context_length=CONTEXT, pool_tokens=CONTEXT, waiting_seconds=WAITING_SECONDS
    )


_DECODE = _decode("decode-new", VERSION)

LEAK = Scene(
    "SGLang 0.5.19, as it was",
    _prefill("prefill-old", "0.5.19"),
    _decode("decode-old", "0.5.19"),
    (1100, 1500, 2000, 2500, 3000),
)
TRUNCATED = Scene(
    f"SGLang {VERSION} with --allow-auto-truncate on prefill",
    _prefill("prefill-truncating", VERSION, "--allow-auto-truncate"),
    _DECODE,
    (1100, 2000, 3000),
    kept=PREFILL_POOL - 6,  # as SGLang counts: a place for the next token and a margin
)
HANGING = Scene(f"SGLang {VERSION}", _prefill("prefill-new", VERSION), _DECODE, (1100, 3000), users=0)

SCENES = (LEAK, TRUNCATED, HANGING)

SERVERS = tuple({server.name: server for scene in SCENES for server in (scene.prefill, scene.decode)}.values())
"""All that must run, each once: the two pairs of 0.5.23 share their decode server."""
