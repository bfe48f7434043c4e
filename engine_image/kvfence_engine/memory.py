"""Records in memory that several processes share: one writer each, any number of readers, never a torn value.

A record has two cells. The writer fills the one that is not current and leaves the other alone, so there is a whole
value at every instant, also when the writer is killed half way. Each cell carries its generation and a checksum over
both; a reader takes the newest cell whose checksum fits. Only two writes during one read can make it see none, and then
it looks again. No lock: a process that is killed while it holds one would stop all others.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mmap

_HEAD = struct.Struct("<QII")  # generation, length, CRC-32 of these two and the value
_ATTEMPTS = 1000


class TornError(RuntimeError):
    """No whole value was seen. Whoever reads a door like that takes it for closed."""


class Record:
    """One value of up to `capacity` bytes."""

    def __init__(self, memory: mmap.mmap, offset: int, capacity: int) -> None:
        self._memory = memory
        self._offset = offset
        self._capacity = capacity

    @staticmethod
    def size(capacity: int) -> int:
        """Bytes that a record of this capacity takes."""
        return 2 * (_HEAD.size + capacity)

    def read(self) -> bytes:
        """Return the newest value; nothing when none was written yet.

        Raises:
            TornError: when no cell is whole, again and again.
        """
        for _ in range(_ATTEMPTS):
            cells = [self._cell(0), self._cell(1)]
            whole = [cell for cell in cells if cell is not None]
            if whole:
                return max(whole)[1]
        raise TornError("a record in the shared memory has no whole value")

    def write(self, value: bytes) -> None:
        """Replace the value; only the one process whose record it is may call this, from one thread at a time.

        Raises:
            ValueError: when it is longer than the record's capacity.
        """
        if len(value) > self._capacity:
            raise ValueError(f"{len(value)} bytes do not fit into a record of {self._capacity}")
        generations = [cell[0] if cell else 0 for cell in (self._cell(0), self._cell(1))]
        generation = max(generations) + 1
        start = self._start(generation % 2)
        self._memory[start + _HEAD.size : start + _HEAD.size + len(value)] = value
        _HEAD.pack_into(self._memory, start, generation, len(value), _checksum(generation, value))

    def _start(self, cell: int) -> int:
        return self._offset + cell * (_HEAD.size + self._capacity)

    def _cell(self, cell: int) -> tuple[int, bytes] | None:
        """Return generation and value of a cell that is whole; fresh memory is a whole empty value."""
        start = self._start(cell)
        generation, length, checksum = _HEAD.unpack_from(self._memory, start)
        if length > self._capacity:
            return None
        value = self._memory[start + _HEAD.size : start + _HEAD.size + length]
        if not generation and not length and not checksum:
            return 0, b""
        return (generation, value) if _checksum(generation, value) == checksum else None


def _checksum(generation: int, value: bytes) -> int:
    return zlib.crc32(value, zlib.crc32(struct.pack("<QI", generation, len(value))))
