"""One engine of a stand-in: its pages, its prefix cache, and what runs on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvfence.domain.capacity import INPUT_MARGIN
from kvfence.verify.canary.pages import Pages
from kvfence.verify.canary.session import Known

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = 16
"""Tokens."""

REMEMBERED = 64
"""Prompts that the prefix cache keeps."""


@dataclass(frozen=True)
class Work:
    """What a request asks of an engine."""

    tokens: str
    max_tokens: int
    namespace: str
    """Of the prefix cache."""


@dataclass
class Handed:
    """What prefill hands over to decode."""

    tokens: str
    """The KV: of the whole prompt unless something is broken."""
    first: str
    """The first token of the answer."""
    cached: int
    taken: bool = False


@dataclass(frozen=True)
class Running:
    """One request among those that run on an engine."""

    another: Callable[[], str]
    """Returns what the next one has in its pages, its own when there is none."""
    end: Callable[[], None]


class Engine:
    """A prefill engine, a decode engine, or a server that does both."""

    def __init__(self, role: str, url: str, pool: int, context: int) -> None:
        self.role = role
        self.url = url
        self.pages = Pages(pool, PAGE)
        self.limit = min(pool, context) - INPUT_MARGIN
        """Prompts must be shorter."""
        self.known = Known(role, url, pool, context, self.limit, PAGE, "0.5.23")
        self.asked = 0
        self.prompt_tokens = 0
        self.in_transfer = ""
        """Of an aborted request, still to be written: into whose pages that may be."""
        self._prefixes: list[tuple[str, str]] = []
        self._running: list[tuple[tuple[int, ...], int]] = []

    def cached(self, work: Work) -> int:
        """Return how many tokens of this prompt an earlier one has brought, in whole pages, and remember this one."""
        found = max(
            (_common(prompt, work.tokens) for name, prompt in self._prefixes if name == work.namespace), default=0
        )
        self._prefixes = [*self._prefixes[-REMEMBERED + 1 :], (work.namespace, work.tokens)]
        return min(found, len(work.tokens) - 1) // PAGE * PAGE

    def take(self, tokens: int) -> tuple[int, ...] | None:
        """Return pages for a prompt; what is longer than any may be gets all there are."""
        return self.pages.take(tokens) or (self.pages.take_all() if tokens >= self.limit else None)

    def running(self, pages: tuple[int, ...], tokens: int) -> Running:
        """Count a request among those that run."""
        own = pages, tokens
        self._running.append(own)

        def another() -> str:
            place = self._running.index(own) + 1
            return self.pages.read(*self._running[place % len(self._running)])

        return Running(another, lambda: self._running.remove(own))


def _common(one: str, other: str) -> int:
    """Return how long two prompts are the same, by halving: character for character would take most of a control."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if one[:middle] == other[:middle] else (least, middle - 1)
    return least
