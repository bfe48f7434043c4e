"""What prefill says to decode beside the first token: which KV it handed over, and of which prompt.

SGLang sends a row of metadata with the KV of each request and leaves most of two of its fields empty: of
`cached_tokens`, 16 numbers of 32 bits, it uses the first seven and upstream means to use the eighth; of
`bootstrap_room`, 8 numbers of 64 bits, the first. Rows are used again without being cleared, so what is found there
may be of another request, of a prefill engine without this plugin, or of a later version of it.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

INT32_SLOTS = slice(8, 16)
"""Of `cached_tokens`: a magic word, the version of the format, and six for the check."""
UINT64_SLOTS = slice(1, 8)
"""Of `bootstrap_room`: the fields of `HandOver` in their order."""

_MAGIC = 0x6B76666E  # "kvfn"
_VERSION = 1
_CHECK = struct.Struct("<6i")
_FIELDS = struct.Struct("<7Q")
_END = 2**63
"""Some devices have no unsigned numbers of 64 bits."""


@dataclass(frozen=True)
class HandOver:
    """KV of one prompt, from prefill to decode. All from 0 up to below 2**63."""

    room: int
    start: int
    """The first token of the prompt whose KV was handed over; the ones before it are what decode had."""
    end: int
    """The token after the last one whose KV was handed over."""
    tokens: int
    """Length of the prompt as prefill has it."""
    digest: int
    """Of the prompt and its namespace."""
    proof: int
    """Of the bytes that prefill had in its pages; 0 when it made none."""
    generation: int
    """Of the request on prefill."""


def write(handover: HandOver) -> tuple[list[int], list[int]]:
    """Return what goes into `INT32_SLOTS` and what into `UINT64_SLOTS`.

    Raises:
        ValueError: for a number that is out of range.
    """
    fields = list(astuple(handover))
    if not all(0 <= field < _END for field in fields):
        raise ValueError("a hand-over with a number that is not one of 63 bits")
    return [_MAGIC, _VERSION, *_check(fields)], fields


def read(int32_values: Sequence[int], uint64_values: Sequence[int], room: int) -> HandOver | None:
    """Return what was handed over for a room; none when these slots do not say.

    Args:
        int32_values: from `INT32_SLOTS`.
        uint64_values: from `UINT64_SLOTS`.
        room: of the request that the row is for.
    """
    if len(uint64_values) != len(HandOver.__dataclass_fields__):
        return None
    found = HandOver(*uint64_values)
    try:
        wanted, _ = write(found)
    except ValueError:
        return None
    return found if found.room == room and list(int32_values) == wanted else None


def _check(fields: Sequence[int]) -> tuple[int, ...]:
    """Return six numbers of 32 bits that go with these fields. Without a key: a row can be stale, or cut short."""
    digest = hashlib.blake2b(_FIELDS.pack(*fields), digest_size=_CHECK.size, person=b"kvfence handover").digest()
    return _CHECK.unpack(digest)
