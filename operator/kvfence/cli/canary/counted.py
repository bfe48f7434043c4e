"""GETs that find out what a server is, counted against the budget of the run like those of its checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.cli.asked import SECONDS
from kvfence.engine.bodies import BODY_LIMIT
from kvfence.engine.web import Web

if TYPE_CHECKING:
    from kvfence.domain.asking import Reply
    from kvfence.verify.canary.session import Budget


class CountedWeb(Web):
    """A `Web` that waits for the turn of each request."""

    def __init__(self, budget: Budget, key: str | None = None) -> None:
        super().__init__(SECONDS, BODY_LIMIT, key)
        self._budget = budget

    async def fetch(self, method: str, url: str, body: bytes | None = None, seconds: float | None = None) -> Reply:
        """Send one request in its turn; see `Web.fetch`.

        Raises:
            BudgetSpentError: when there would be too many of them.
        """
        await self._budget.take_read()
        return await super().fetch(method, url, body, seconds)
