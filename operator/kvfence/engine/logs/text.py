"""From whatever bytes a log comes in to UTF-8 text in blocks, in bounded memory."""

from __future__ import annotations

import codecs
import re
import zlib
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK = 1 << 20
"""Bytes that are read at a time."""

_GZIP = b"\x1f\x8b"
_WIDE = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_HOLES = re.compile(rb"\x00{2,}")
"""What a file system leaves. A lone NUL stays: it is half of a wide letter, beside which bytes are no text of ours."""

_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\)|[@-Z\\^_])")
"""Colours, movements of the cursor, titles and links of a terminal (ECMA-48)."""


class Text:
    """The text of a log; iterate once."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.cut: bool = False
        """Whether a compressed log ended too early or was broken."""
        self.empty = True

    def __iter__(self) -> Iterator[bytes]:
        """Yield blocks of UTF-8, at most a few times BLOCK each."""
        blocks = self._decompressed()
        first = next(blocks, b"")
        while 0 < len(first) < 4 and (more := next(blocks, b"")):
            first += more
        self.empty = not first
        coding = _coding(first)
        if coding is None:
            yield first.removeprefix(codecs.BOM_UTF8)
            yield from blocks
            return
        decoder = codecs.getincrementaldecoder(coding)(errors="replace")
        yield decoder.decode(first).removeprefix("\ufeff").encode(errors="replace")
        for block in blocks:
            yield decoder.decode(block).encode(errors="replace")

    def _decompressed(self) -> Iterator[bytes]:
        first = self._stream.read(BLOCK)
        while 0 < len(first) < 2 and (more := self._stream.read(BLOCK)):
            first += more
        if not first.startswith(_GZIP):
            while first:
                yield first
                first = self._stream.read(BLOCK)
            return
        yield from self._members(first)

    def _members(self, raw: bytes) -> Iterator[bytes]:
        """Yield what the members of a gzip file hold. Rotated logs are often several, one behind the other."""
        member = zlib.decompressobj(31)
        while raw:
            try:
                yield member.decompress(raw, BLOCK)
            except zlib.error:
                self.cut = True
                return
            if member.eof:
                raw = member.unused_data.lstrip(b"\0") or self._stream.read(BLOCK)
                if raw:
                    member = zlib.decompressobj(31)
                continue
            raw = member.unconsumed_tail or self._stream.read(BLOCK)
        self.cut = not member.eof


def _coding(first: bytes) -> str | None:
    """Return the coding of wide text; none for UTF-8 and its like."""
    if (coding := _WIDE.get(first[:2])) is not None:
        return coding
    if len(first) >= 4 and first[1] == first[3] == 0 and first[0] and first[2]:
        return "utf-16-le"
    if len(first) >= 4 and first[0] == first[2] == 0 and first[1] and first[3]:
        return "utf-16-be"
    return None


def plain(lines: bytes) -> bytes:
    """Return whole lines without terminal escapes and runs of NULs, each ending in a bare line feed.

    A lone carriage return ends a line too: progress bars draw over themselves with it.
    """
    if b"\x00" in lines:
        lines = _HOLES.sub(b"", lines)
    if b"\x1b" in lines:
        lines = _ESCAPES.sub(b"", lines)
    if b"\r" in lines:
        lines = lines.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return lines
