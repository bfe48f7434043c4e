"""A pair of engines as users and routers have it, and what they ask it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from e2e.door.engines import HOST, Engine
from kvfence.engine.pair import Pair, Question
from kvfence_engine.state import Partner

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Asked(Question):
    """A question with whatever more fields in its body."""

    fields: dict[str, Any] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """Return the request with them."""
        return super().body() | self.fields


@dataclass
class Legs:
    """Two engines behind their doors."""

    prefill: Engine
    decode: Engine

    @property
    def pair(self) -> Pair:
        """As a router has them."""
        prefill, decode = (f"http://{HOST}:{leg.ports.http}" for leg in (self.prefill, self.decode))
        return Pair(prefill, decode, HOST, self.prefill.ports.bootstrap)

    def doors(self, expected: dict[str, str], seconds: float) -> dict[str, str]:
        """How the door of each engine stands, as soon as that is as expected, at the latest after so long."""
        deadline = time.monotonic() + seconds
        while True:
            found = {leg.server.name: leg.status()["door"] for leg in (self.prefill, self.decode)}
            if found == expected or time.monotonic() > deadline:
                return found
            time.sleep(0.02)

    def counts(self) -> dict[str, Any]:
        """What the defences of each engine count, as its launcher says."""
        return {leg.server.name: leg.status()["ranks"][0]["integrity"] for leg in (self.prefill, self.decode)}


def admit(engines: Sequence[Engine], cap: int) -> None:
    """Open the doors of a prefill and a decode engine, in this order, to users; each is told of the other's boot."""
    prefill, decode = engines
    for engine, other in ((prefill, decode), (decode, prefill)):
        peer = prefill.peer if other is prefill else ""
        partner = Partner(f"{HOST}:{other.control}", peer, other.status()["key"])
        said = engine.admit(cap=cap, peers=(prefill.peer,), partners=(partner,))
        assert said.status == 200, said.text
