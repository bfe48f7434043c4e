"""Finds the few lines of a long log that can matter, and those right behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvfence.engine.logs.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LONGEST = 1 << 20
"""Bytes of one line that are looked at."""

FOLLOWING = 9
"""Lines behind one that matters: a record that somebody wrapped goes on there."""

FOLLOWING_TRACEBACK = 40
TRACEBACK = b"Traceback (most recent"
NEEDLES = (
    b"ax_total_num_token",
    b"#tokens: ",
    b"emory calculation: bytes_per_full_token=",
    b"liding window memory pool",
    b"sizing: full_layer_tokens=",
    b"V4 pool sizes: full=",
    b", full size: ",
    b"KV pool holds ",
    b"Memory pool end",
    b"VA upper bound",
    b"server_args=",
    b"Load weight begin",
    b"The server is fired up and ready",
    b"pplication startup complete",
    b"Uvicorn running on http",
    b"hit an exception",
    b"cheduler died",
    TRACEBACK,
    b"sigquit from a child",
    b"leave no GPU memory",
    b"Not enough memory",
    b"out of memory",
    b"exit code",
    b"exited with code",
    b"Killed",
    b"code=killed",
    b"address already in use",
    b"exceeds the maximum allowed length",
    b"hierarchical KV",
    b"GPU KV cache size",
    b"Maximum concurrency for",
    b"GPU blocks: ",
    b"vLLM API server version",
    b"LLM engine (v",
    b"Using max model len",
    b"initialization failed",
    b"failed to start",
    b"No available memory for the cache",
    b"To serve at least one request",
    b"non-default args: ",
    b"args: Namespace(",
    b"glang version",
    b"glang==",
    b"==> ",
    b'"MESSAGE":[',
    b'"MESSAGE": [',
)
"""What one of these is not in, tells nothing: whole blocks of a long log are passed over by them."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line that can matter."""

    number: int
    """In the log, from 0."""
    raw: bytes
    ended: bool = True
    """False for the last one of a log that does not end in a line feed: it may have been cut."""
    overlong: bool = False
    """It was longer than LONGEST, and only its beginning is here."""


class Lines:
    """The lines of a text that can matter, in their order."""

    def __init__(self, blocks: Iterable[bytes], wanted: int = 0) -> None:
        """Take the text, and how many of its first lines are wanted whatever is in them."""
        self._blocks = blocks
        self._number = 0
        self._due = wanted
        """Lines that are still wanted behind the last one that mattered."""

    def __iter__(self) -> Iterator[Line]:
        """Yield them."""
        carry, skipping = b"", False
        for block in self._blocks:
            text = carry + block
            if skipping:
                text = text[text.find(b"\n") + 1 :] if b"\n" in text else b""
                skipping = not text
            cut = text.rfind(b"\n") + 1
            whole, carry = text[:cut], text[cut:]
            if whole:
                yield from self._of(plain(whole))
            if len(carry) > LONGEST:
                yield Line(self._number, plain(carry[:LONGEST]).partition(b"\n")[0], ended=True, overlong=True)
                self._number += 1
                carry, skipping = b"", True
        if carry:
            *whole_lines, last = plain(carry).split(b"\n")
            for raw in whole_lines:
                yield Line(self._number, raw)
                self._number += 1
            yield Line(self._number, last, ended=False)

    def _of(self, text: bytes) -> Iterator[Line]:
        """Yield the lines of a block of whole lines."""
        at = counted = 0
        hits = _hits(text)
        index = 0
        while at < len(text):
            if self._due == 0:
                while index < len(hits) and hits[index][0] < at:
                    index += 1
                if index == len(hits):
                    break
                at = hits[index][0]
            while index < len(hits) and hits[index][0] < at:
                index += 1
            self._due = max(0, self._due - 1)
            if index < len(hits) and hits[index][0] == at:
                self._due = max(self._due, hits[index][1])
            end = text.find(b"\n", at)
            end = len(text) if end < 0 else end
            self._number += text.count(b"\n", counted, at)
            counted = at
            raw = text[at:end]
            yield Line(self._number, raw[:LONGEST], overlong=len(raw) > LONGEST)
            at = end + 1
        self._number += text.count(b"\n", counted)


def _hits(text: bytes) -> list[tuple[int, int]]:
    """Return where lines begin that a needle is in or that stand before one, and how many behind them are wanted."""
    found: dict[int, int] = {}
    for needle in NEEDLES:
        at = text.find(needle)
        follow = FOLLOWING_TRACEBACK if needle is TRACEBACK else FOLLOWING
        while at >= 0:
            start = text.rfind(b"\n", 0, at) + 1
            found[start] = max(follow, found.get(start, 0))
            if start:
                before = text.rfind(b"\n", 0, start - 1) + 1
                found[before] = max(1, found.get(before, 0))
            end = text.find(b"\n", at)
            at = text.find(needle, end) if end >= 0 else -1
    return sorted(found.items())
