"""A stand-in whose flaw strikes a question with some probability, and that counts how many were asked and struck."""

from __future__ import annotations

import random
from contextvars import ContextVar

from kvfence.domain.asking import Call, Heard
from kvfence.verify.canary.stand_in import Flaw, Shape, StandIn

_struck: ContextVar[bool] = ContextVar("struck", default=False)
"""Whether the request that runs in this task is struck; those that run at the same time have their own."""


class Chancy(StandIn):
    """Broken for some questions only. Both legs of a pair are struck together: they are one question."""

    def __init__(self, shape: Shape, flaw: Flaw, rate: float, chance: random.Random) -> None:
        self._may = frozenset({flaw})
        self._rate = rate
        self._chance = chance
        self._rooms: dict[object, bool] = {}
        super().__init__(shape, frozenset())

    @property
    def flaws(self) -> frozenset[Flaw]:
        """What is broken for the request that asks."""
        return self._may if _struck.get() else frozenset()

    @flaws.setter
    def flaws(self, flaws: frozenset[Flaw]) -> None:
        assert not flaws, "what is broken is said with its rate"

    async def send(self, call: Call, seconds: float) -> Heard:
        """Throw the dice for a question, and answer as one that is broken or not."""
        room = call.body.get("bootstrap_room")
        struck = self._rooms.get(room) if room is not None else None
        if struck is None:
            struck = self._chance.random() < self._rate
            if room is not None:
                self._rooms[room] = struck
        token = _struck.set(struck)
        try:
            return await super().send(call, seconds)
        finally:
            _struck.reset(token)
