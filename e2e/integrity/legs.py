"""A pair of engines as users and routers have it, and what they ask it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from e2e.door.engines import HOST, Engine
from kvfence.engine.pair import Pair, Question

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

    def counts(self) -> dict[str, Any]:
        """What the defences of each engine count, as its launcher says."""
        return {leg.server.name: leg.status()["ranks"][0]["integrity"] for leg in (self.prefill, self.decode)}


def admit(engines: Sequence[Engine], cap: int) -> None:
    """Open the doors of a prefill and a decode engine, in this order, to users."""
    for engine in engines:
        said = engine.admit(cap=cap, peers=(engines[0].peer,))
        assert said.status == 200, said.text
