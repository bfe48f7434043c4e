"""Page tags: who holds each page of the KV pool, what it should hold, and whether it was written since it was taken.

A page that is free has no tags. Whoever takes it gets a generation, a number that no other request ever carries, so a
stale row of a page table is told from a true one without counting epochs. On prefill, pages in the radix tree are read
by requests that did not take them: those must expect the same content there.

Tags attest bookkeeping, not bytes: they follow what SGLang was told to read and write.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Array = Any
"""One-dimensional int64: a numpy array, or a torch tensor."""

FREE = 0
_DUMMY = 0
CONFLICT = -1
"""Owner of a page that was given to two at once: it is nobody's until it is released."""

LARGEST = 2**62
"""Generations and content tags are from 1 up to this."""


class Verdict(IntEnum):
    """What is found of one page that a request is about to read."""

    FINE = 0
    FOREIGN = 1
    """Another holds it, or nobody, and what it holds is not what this request expects there."""
    UNWRITTEN = 2
    """Nothing was written since it was taken: it has what an earlier owner left."""


class TagTable:
    """The tags of one pool.

    Args:
        pages: how many, the dummy page 0 included, which nobody takes.
        zeros: makes an array of that many zeros.
        counting: makes an array of 0, 1, 2 ... of that many.
    """

    def __init__(self, pages: int, zeros: Callable[[int], Array], counting: Callable[[int], Array]) -> None:
        self._owner = zeros(pages)
        self._content = zeros(pages)
        self._writer = zeros(pages)
        self._conflicts = zeros(1)
        # Numbers of the host that are put where an index says make it wait for a GPU; these are there already.
        self._order = counting(pages)
        self._places = zeros(pages)
        self._nothing = zeros(1)
        self._conflict = zeros(1) + CONFLICT

    def __len__(self) -> int:
        return len(self._owner)

    def take(self, pages: Array, generation: int | Array, *, written: bool, yields: bool = False) -> None:
        """Give pages to a request, and count those that are held, or that come twice.

        Args:
            pages: page ids.
            generation: of the request; or one for each page.
            written: whether what the device does next in order writes them; a transfer does not.
            yields: whether nothing of this request will go into a page that is held: then it stays its holder's. Else
                it becomes nobody's, as does a page that comes twice.
        """
        order = self._order[: len(pages)]
        self._places[pages] = order  # of a page that comes twice one place is overwritten
        held, twice = self._owner[pages] != FREE, self._places[pages] != order
        self._conflicts += (held | twice).sum()
        # The dummy page stands in for those that are left alone: a mask would make the host wait.
        mine = pages * ~held if yields else pages
        self._owner[mine] = generation if isinstance(generation, type(pages)) else pages * 0 + generation
        self._writer[mine] = self._owner[mine] if written else self._nothing
        self._content[mine] = self._nothing
        shared = mine * twice if yields else pages * (held | twice)
        self._owner[shared] = self._conflict
        self._writer[shared] = self._nothing
        for tags in (self._owner, self._writer):
            tags[: _DUMMY + 1] = FREE

    def label(self, pages: Array, contents: Array) -> None:
        """Say what full pages hold, as far as they are held: one content tag for each."""
        self._content[pages] = contents * (self._owner[pages] > FREE)

    def arrived(self, pages: Array, generation: int) -> None:
        """Take note of bytes that came from elsewhere, in pages that this request still holds."""
        mine = self._owner[pages] == generation
        self._writer[pages] = mine * generation + ~mine * self._writer[pages]

    def release(self, pages: Array) -> None:
        """Take all tags off."""
        self._owner[pages] = self._nothing
        self._content[pages] = self._nothing
        self._writer[pages] = self._nothing

    def disguise(self, pages: Array, *, owner: int | None = None, writer: int | None = None) -> tuple[Array, ...]:
        """Give pages other tags for a while; return what `restore` takes. With another owner they hold nothing known.

        Args:
            pages: page ids.
            owner: a generation.
            writer: likewise, or 0 as if nothing had been written.
        """
        kept = tuple(tags[pages] for tags in (self._owner, self._content, self._writer))
        if owner is not None:
            self._owner[pages] = pages * 0 + owner
            self._content[pages] = self._nothing
        if writer is not None:
            self._writer[pages] = pages * 0 + writer
        return kept

    def restore(self, pages: Array, kept: tuple[Array, ...]) -> None:
        """Give pages back the tags that they had before `disguise`."""
        for tags, values in zip((self._owner, self._content, self._writer), kept, strict=True):
            tags[pages] = values

    def clear(self) -> None:
        """Release all."""
        self._owner[:] = FREE
        self._content[:] = 0
        self._writer[:] = 0

    def held(self, pages: Array, generation: int) -> Array:
        """Return for each of these pages whether it is this request's own."""
        return self._owner[pages] == generation

    def all_held(self, generation: int) -> Array:
        """Return for each page of the pool whether it is this request's own."""
        return self._owner == generation

    def verdicts(self, pages: Array, generation: int, contents: Array | None = None) -> Array:
        """Judge what a request is about to read: an array of `Verdict` values, one for each page.

        Args:
            pages: page ids, in the order of the prompt.
            generation: of the request.
            contents: the content tags that it expects, 0 where it expects none; none when it shares no page.
        """
        allowed = self._owner[pages] == generation
        if contents is not None:
            allowed = allowed | ((self._content[pages] == contents) & (contents != 0))
        unwritten = self._writer[pages] == 0
        return ~allowed * int(Verdict.FOREIGN) + (allowed & unwritten) * int(Verdict.UNWRITTEN)

    def conflicts(self) -> int:
        """Return how often a page was given to two at once, and begin to count anew. The host waits for the device."""
        found = int(self._conflicts[0])
        self._conflicts[:] = 0
        return found
