"""Decides about each request in the HTTP process: by the state of the door, the fields and the passes that are left."""

from __future__ import annotations

from contextvars import ContextVar
from enum import Enum
from typing import TYPE_CHECKING

from kvfence_engine import canaries, requests
from kvfence_engine.memory import TornError
from kvfence_engine.requests import Leg, Refused, Why
from kvfence_engine.seen import SeenOnce
from kvfence_engine.state import Door, Grant, SharedState

if TYPE_CHECKING:
    from collections.abc import Mapping


class Passed(Enum):
    """As what a request came through the door."""

    USER = "user"
    CANARY = "canary"
    HEALTH = "health"
    """Not a request of anyone: SGLang makes one up to answer `/health`."""


PASSED: ContextVar[Passed | None] = ContextVar("kvfence_passed", default=None)
"""Set for everything that runs for a request. What reaches SGLang without it came around the door."""

_ADMITS = {
    Passed.USER: frozenset({Door.OPEN}),
    Passed.CANARY: frozenset({Door.OPEN, Door.CANARY}),
    # A router takes an engine up only when it is healthy, and it is proven through that router before users come.
    Passed.HEALTH: frozenset({Door.OPEN, Door.CANARY}),
}


class Gate:
    """Of one HTTP process, which is the only one of its engine: what was used once is remembered here."""

    def __init__(self, state: SharedState, *, disaggregated: bool) -> None:
        self._state = state
        self._disaggregated = disaggregated
        self._used: set[str] = set()
        self._seen = {"room": SeenOnce(), "rid": SeenOnce()}

    def shut(self) -> Refused | None:
        """Return the refusal that everyone gets now; none when the door lets anybody in."""
        door = self._grant().door
        return None if door in (Door.OPEN, Door.CANARY) else _shut(door)

    def shut_to_users(self) -> Refused | None:
        """Return the refusal that everyone without a pass gets now."""
        door = self._grant().door
        return None if door is Door.OPEN else _shut(door)

    def enter(self, fields: Mapping[str, object]) -> Passed | Refused:
        """Judge a body and say as what it goes on. Pass, room and id are used up by that, whatever becomes of it."""
        grant = self._grant()
        if grant.door not in (Door.OPEN, Door.CANARY):
            return _shut(grant.door)
        refused = requests.judge(fields, self._leg(grant))
        if refused is not None:
            return refused
        shown = requests.passes(fields)
        is_canary = shown is not None and shown in grant.passes and shown not in self._used
        if grant.door is Door.CANARY and not is_canary:
            return _shut(grant.door)
        passed = Passed.CANARY if is_canary else Passed.USER
        refused = _misnamed(passed, grant.door, fields) or self._again(fields)
        if refused is not None:
            return refused
        if shown is not None and is_canary:
            self._used.add(shown)
        for what, name in requests.names(fields):
            self._seen[what].add(name)
        return passed

    def confirm(self, passed: Passed | None, fields: Mapping[str, object]) -> Refused | None:
        """Judge what SGLang made of a request, at the last moment before it acts on it."""
        grant = self._grant()
        if passed is None:
            return Refused(503, Why.CLOSED, "this request did not come through the door")
        if grant.door not in _ADMITS[passed]:
            return _shut(grant.door)
        if passed is Passed.HEALTH:
            return None
        return requests.judge(fields, self._leg(grant)) or _misnamed(passed, grant.door, fields)

    def _again(self, fields: Mapping[str, object]) -> Refused | None:
        if any(self._seen[what].has(name) for what, name in requests.names(fields)):
            sentence = "a request with this bootstrap room, or this id, came here before: each is good for one request"
            return Refused(409, Why.SEEN_BEFORE, sentence)
        return None

    def _grant(self) -> Grant:
        try:
            return self._state.grant()
        except (TornError, ValueError, TypeError, KeyError):
            return Grant()  # what cannot be read is a closed door

    def _leg(self, grant: Grant) -> Leg:
        return Leg(self._disaggregated, frozenset(grant.peers))


def _misnamed(passed: Passed, door: Door, fields: Mapping[str, object]) -> Refused | None:
    """Refuse an id that asks for what only a canary gets."""
    rid = fields.get("rid")
    if not canaries.is_ours(rid) or (passed is Passed.CANARY and (door is Door.CANARY or not canaries.is_drill(rid))):
        return None
    sentence = f"a request id that begins with {canaries.OURS} is for kvfence's own checks"
    return Refused(400, Why.CANARY_RID, sentence)


def _shut(door: Door) -> Refused:
    if door is Door.CANARY:
        return Refused(503, Why.NO_PASS, "this engine is being proven and serves nobody yet")
    said = {
        Door.CLOSED: "this engine is closed: it was not admitted yet",
        Door.DRAINING: "this engine is going away and takes no more requests",
        Door.TAINTED: "this engine is closed for good: an isolation defence tripped",
    }
    return Refused(503, Why.CLOSED, said.get(door, "this engine is closed"))
