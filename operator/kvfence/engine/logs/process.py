"""What any server in Python says of its own life, SGLang's and vLLM's alike."""

from __future__ import annotations

import re

from kvfence.engine.logs.facts import Kind, Said

STARTUP = "startup"
"""uvicorn says this before it binds its address, and may fail at that."""

BIND = "its address is in use"
DIED = "a scheduler died during initialization"
NO_MEMORY = "there is not enough memory for a pool"
NO_CORE = "the engine's core failed to start"
AT_START = frozenset({BIND, DIED, NO_MEMORY, NO_CORE})
"""Failures that only a start has; the others may also come later."""

_TRACEBACK = re.compile(r"Traceback \(most recent call last\):")
_READY = (
    (re.compile(r"Application startup complete\b"), STARTUP),
    (re.compile(r"Uvicorn running on https?://"), ""),
)
_FAILED = (
    (re.compile(r"\[Errno [0-9]+\] .{0,200}address already in use"), BIND),
    (re.compile(r"(?:\w+Error: )?(?:CUDA|HIP|NPU|XPU|MUSA) out of memory\b"), "the device has not enough memory"),
    (re.compile(r"(?:[\w./-]+: line [0-9]+: +)?(?:[0-9]+ )?Killed\b"), "its process was killed"),
    (re.compile(r"(?:Main process exited|Child process|Process|Container) .{0,120}(?:exit code|code=killed|SIGKILL)"),
     "its process ended"),
    (re.compile(r"[Ee]xit(?:ed with)? code:? -?[1-9]"), "its process ended"),
)  # fmt: skip
_EXITED = re.compile(r"(?P<name>[\w.-]{1,200}) exited with code (?P<code>[0-9]{1,3})")


def said(body: str) -> Said | None:
    """Return what a record says of the life of its process; none when it says nothing of it."""
    if _TRACEBACK.match(body) is not None:
        return Said(Kind.TRACEBACK)
    for pattern, word in _READY:
        if pattern.match(body) is not None:
            return Said(Kind.READY, word=word)
    for pattern, word in _FAILED:
        if pattern.match(body) is not None:
            return Said(Kind.FAILED, word=word)
    return None


def exited(body: str) -> str | None:
    """Return the name of a container of which docker compose says that it ended in an error."""
    match = _EXITED.match(body)
    return None if match is None or int(match["code"]) == 0 else match["name"]
