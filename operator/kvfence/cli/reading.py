"""A stream that may be a server's answer or a log: it is the one when it can be read as the one."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, BinaryIO, cast

from kvfence.domain.diagnosis.seen import Unreadable
from kvfence.engine import bodies, logs

if TYPE_CHECKING:
    from kvfence.domain.diagnosis.seen import Seen


def read_stream(stream: BinaryIO, source: str) -> tuple[Seen, ...]:
    """Return what a file or a pipe tells.

    Args:
        stream: read once, from where it stands; a pipe need not be seekable.
        source: what the user named.

    Raises:
        OSError: of the stream.
    """
    head = _up_to(stream, bodies.BODY_LIMIT + 1)
    if not head:
        return (Unreadable(source, "It is empty: give the log of a server from its start on, or its /server_info."),)
    found = bodies.read(head, source) if len(head) <= bodies.BODY_LIMIT else None
    if found is not None:
        return found
    whole = io.BufferedReader(_Again(head, stream), 1 << 16)
    return logs.read(cast("BinaryIO", whole), source)


def _up_to(stream: BinaryIO, limit: int) -> bytes:
    """Read until the end or the limit; a pipe gives what it has, piece by piece."""
    read = bytearray()
    while len(read) < limit and (piece := stream.read(min(limit - len(read), 1 << 20))):
        read += piece
    return bytes(read)


class _Again(io.RawIOBase):
    """What was read already, and then the rest."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        super().__init__()
        self._head = memoryview(head)
        self._rest = rest

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # io hands it a memoryview
        """Fill the buffer as far as there is something."""
        piece = self._head[: len(buffer)]
        if piece:
            self._head = self._head[len(piece) :]
        else:
            piece = memoryview(self._rest.read(len(buffer)))
        buffer[: len(piece)] = piece
        return len(piece)
