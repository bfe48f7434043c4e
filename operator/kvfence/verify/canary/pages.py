"""The paged KV pool of a stand-in: what is given back keeps its content until somebody writes over it."""

from __future__ import annotations

import itertools
from collections import deque

from kvfence.verify.canary.copying import EMPTY


class Pages:
    """So many tokens in pages; those that were given back first are taken first."""

    def __init__(self, tokens: int, page_size: int) -> None:
        self._size = page_size
        self._cells = [EMPTY] * (tokens - tokens % page_size)
        self._free = deque(range(len(self._cells) // page_size))

    def take(self, tokens: int) -> tuple[int, ...] | None:
        """Return pages for so many tokens; none when there are not enough."""
        count = -(-tokens // self._size)
        if count > len(self._free):
            return None
        return tuple(self._free.popleft() for _ in range(count))

    def take_all(self) -> tuple[int, ...]:
        """Return all pages that are free: what an engine has that does not ask whether there are enough."""
        taken = tuple(self._free)
        self._free.clear()
        return taken

    def write(self, pages: tuple[int, ...], tokens: str) -> None:
        """Write from the first place of these pages on, as far as there is room."""
        for number, page in enumerate(pages):
            part = tokens[number * self._size : (number + 1) * self._size]
            if not part:
                return
            self._cells[page * self._size : page * self._size + len(part)] = part

    def read(self, pages: tuple[int, ...], tokens: int) -> str:
        """Return what so many places of these pages hold, whoever wrote it."""
        held = (self._cells[page * self._size : (page + 1) * self._size] for page in pages)
        return "".join(itertools.chain.from_iterable(held))[:tokens]

    def give_back(self, pages: tuple[int, ...]) -> None:
        """Free pages without touching what is in them."""
        self._free.extend(pages)
