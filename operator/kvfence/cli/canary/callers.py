"""Sends the user's key to the servers that the user named, and to nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvfence.domain.asking import Call, Heard, Reply
    from kvfence.verify.canary.session import Caller


class ByName:
    """A `Caller` with two ways: checks also ask engines that a router lists, and a router can list any address."""

    def __init__(self, named: Caller, strangers: Caller, urls: tuple[str, ...]) -> None:
        self._named = named
        self._strangers = strangers
        self._prefixes = tuple(f"{url}/" for url in urls)

    async def send(self, call: Call, seconds: float) -> Heard:
        """Send a request, with the key if it goes to a server that was named."""
        return await self._way(call.url).send(call, seconds)

    async def read(self, url: str, seconds: float) -> Reply:
        """Read a page, with the key if it is of a server that was named."""
        return await self._way(url).read(url, seconds)

    def _way(self, url: str) -> Caller:
        return self._named if url.startswith(self._prefixes) else self._strangers
