"""A KV pool of three pages and the dummy page, on real arrays, whose bytes tell whose they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvfence_engine.integrity.scrub import KvPages

PAGE_TOKENS = 2
PAGES = 4
_NUMBERS = 2
_EACH = 1000

Numbers = np.ndarray[Any, np.dtype[np.int64]]


class Memory:
    """Keys and values of a model with one layer and one head."""

    def __init__(self) -> None:
        self._buffers = [np.zeros((PAGES * PAGE_TOKENS, 1, _NUMBERS), np.int64) for _ in ("keys", "values")]
        self.pages = KvPages(self._buffers, PAGE_TOKENS, words=lambda rows: rows)

    def write(self, page: int, whose: int, place: int) -> None:
        """Write KV of a request's page at that place of its prompt into a page."""
        for part, buffer in enumerate(self._buffers):
            for token in range(PAGE_TOKENS):
                of_token = place * PAGE_TOKENS + token
                buffer[page * PAGE_TOKENS + token, 0] = whose * _EACH + of_token * 10 + part * 2 + np.arange(_NUMBERS)

    def whose(self, page: int) -> int:
        """Return whose KV is in a page; 0 for zeros.

        Raises:
            ValueError: it is of more than one.
        """
        rows = slice(page * PAGE_TOKENS, (page + 1) * PAGE_TOKENS)
        found = {int(number) // _EACH for buffer in self._buffers for number in buffer[rows].flatten()}
        if len(found) != 1:
            raise ValueError(f"page {page} holds KV of {sorted(found)}")
        return found.pop()

    def proof(self, pages: list[int]) -> int:
        """Return the proof of the bytes in these pages; 0 when there are none."""
        tokens = [page * PAGE_TOKENS + token for page in pages for token in range(PAGE_TOKENS)]
        return self.pages.proof(np.array(tokens, np.int64)) if tokens else 0
