"""The operator's side of a door: the port of the launcher of kvfence-engine.

A launcher runs in a pod that users may have had a hand in, so what it says is checked like anybody's answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from yarl import URL

from kvfence.domain.engines import CONTROL_PORT, Attested, Blown, DoorState, Partner
from kvfence.engine import attestation, fields
from kvfence.engine.receipts import parse_receipts
from kvfence.engine.web import DETAIL_LIMIT, OverWeb, Unanswered, Web, printable, unanswered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.domain.asking import Reply
    from kvfence.domain.receipts import Receipt

__all__ = ["DoorClient", "DoorState", "DoorStatus", "RankStatus", "Refused", "Unanswered", "parse_status"]

PORT = CONTROL_PORT
"""Of the launcher (`kvfence_engine.launcher.PORT`)."""

STATUS_SECONDS = 5.0
"""The launcher answers from memory, also while SGLang loads or hangs."""

ADMIT_SECONDS = 70.0
"""The launcher waits 60 s for all ranks to apply the cap (`kvfence_engine.doorkeeper.APPLY_SECONDS`), and then says
that they did not.
"""

BODY_LIMIT = 1_000_000
"""Bytes of a status: 256 ranks take some 300,000, peers, partners and passes a third of that."""

MAX_RANKS = 256
"""As many as a launcher has room for (`kvfence_engine.state.MAX_RANKS`)."""


@dataclass(frozen=True)
class RankStatus:
    """What one scheduler process of the engine said about itself."""

    index: int
    nonce: str
    pool_tokens: int
    """That its KV pool holds, after sizing."""
    page_size: int
    boot_input_limit: int
    """`max_req_input_len` before any cap: prompts must be shorter, in tokens."""
    input_limit: int
    """The same under the cap that holds."""
    epoch: int
    """Of the cap that it applied last; 0 before the first."""
    attested: Attested | None = None
    """What it says of its defences; none when it says nothing that can be read."""


@dataclass(frozen=True)
class DoorStatus:
    """How one boot of an engine stands."""

    version: str
    """Of kvfence-engine."""
    pool: str
    pod: str
    door: DoorState
    epoch: int
    """Of the last admission; 0 before the first."""
    cap: int
    """Tokens of context; 0 before the first admission."""
    peers: tuple[str, ...]
    started: bool
    """Whether the engine serves, with the door in all its processes and every pool measured."""
    nonces: tuple[str, ...]
    """Of all processes; empty until it has started."""
    sglang: str | None
    """The version that runs, as the process itself says; none until it is known."""
    ranks: tuple[RankStatus, ...]
    """In the order of their index."""
    fault: str | None
    """Why a process of the engine gave up."""
    server_epoch: int = 0
    """Of the cap that the HTTP process applied last."""
    key: str = ""
    """Public key of the boot, in base64; empty for an older kvfence-engine."""
    partners: tuple[Partner, ...] = ()
    blown: Blown | None = None
    """Why the fuse is blown; none when it is not."""

    @property
    def applied(self) -> bool:
        """Whether every process took the cap that is granted; the launcher tells the grant before they have."""
        if self.server_epoch != self.epoch:
            return False
        return all(rank.epoch == self.epoch and rank.input_limit < self.cap for rank in self.ranks)


@dataclass(frozen=True)
class Refused:
    """An admission that a door did not take."""

    reason: str
    """One word, such as `ForeignBoot`; see `kvfence_engine.admission.Reason`."""
    message: str


def parse_status(raw: bytes) -> DoorStatus:
    """Return what a launcher says of its engine.

    Raises:
        ValueError: when it is not a status, or contradicts itself. The message names the field.
    """
    said = fields.read_object(raw, "the status")
    server = said.get("server")
    fault = said.get("fault")
    status = DoorStatus(
        version=_text(said, "version"),
        pool=_text(said, "pool"),
        pod=_text(said, "pod"),
        door=_door(said),
        epoch=_number(said, "epoch"),
        cap=_number(said, "cap"),
        peers=_texts(said, "peers"),
        started=_truth(said, "started"),
        nonces=_texts(said, "nonces"),
        sglang=None if server is None else _text(_object(server, "server"), "sglang", "server."),
        ranks=_ranks(said.get("ranks")),
        fault=None if fault is None else _fault(fault),
        server_epoch=0 if server is None else _number(_object(server, "server"), "epoch", "server."),
        key=_text(said, "key") if "key" in said else "",
        partners=_partners(said.get("partners", [])),
        blown=None if said.get("blown") is None else _blown(_object(said["blown"], "blown")),
    )
    if status.nonces and not status.started:
        raise ValueError("the status has nonces though the engine has not started")
    if status.started and len(status.nonces) != len(status.ranks) + 1:
        raise ValueError("the status of a started engine has not one nonce for each rank and one for the server")
    return status


class DoorClient(OverWeb):
    """Asks launchers; an async context manager over one HTTP session.

    Args:
        port: of all launchers.
    """

    def __init__(self, port: int = PORT) -> None:
        super().__init__(Web(ADMIT_SECONDS, BODY_LIMIT))
        self._port = port

    async def status(self, host: str) -> DoorStatus | Unanswered:
        """Ask how an engine stands.

        Args:
            host: the pod's address, IPv4 or IPv6.
        """
        what = "GET /status of the launcher"
        url = self._url(host, "/status")
        if isinstance(url, Unanswered):
            return url
        return _status(what, await self._web.fetch("GET", url, None, STATUS_SECONDS))

    async def admit(self, host: str, body: Mapping[str, str]) -> DoorStatus | Refused | Unanswered:
        """Hand an admission over; returns when the engine has applied it or refused it, which may take a minute.

        `Unanswered` does not say that it was not applied: ask for the status.

        Args:
            host: the pod's address, IPv4 or IPv6.
            body: what `Signer.sign` returned.
        """
        what = "POST /admission of the launcher"
        url = self._url(host, "/admission")
        if isinstance(url, Unanswered):
            return url
        reply = await self._web.fetch("POST", url, json.dumps(dict(body)).encode())
        if reply.fault is None and reply.status != 200:
            refused = _refused(reply.body)
            if refused is not None:
                return refused
        return _status(what, reply)

    async def receipts(self, host: str, rid: str) -> tuple[Receipt, ...] | Unanswered:
        """Ask for what the ranks kept of a canary.

        Args:
            host: the pod's address, IPv4 or IPv6.
            rid: that its request had.
        """
        what = "GET /receipt of the launcher"
        url = self._url(host, "/receipt", {"rid": rid})
        if isinstance(url, Unanswered):
            return url
        reply = await self._web.fetch("GET", url, None, STATUS_SECONDS)
        if reply.fault is not None or reply.status != 200:
            return unanswered(what, reply)
        try:
            return parse_receipts(reply.body)
        except ValueError as error:
            return Unanswered(f"{what}: {error}")

    def _url(self, host: str, path: str, query: Mapping[str, str] | None = None) -> str | Unanswered:
        try:
            return str(URL.build(scheme="http", host=host, port=self._port, path=path, query=dict(query or {})))
        except ValueError:  # it would lead somewhere else
            return Unanswered("the pod's address is not a host")


def _status(what: str, reply: Reply) -> DoorStatus | Unanswered:
    if reply.fault is not None or reply.status != 200:
        return unanswered(what, reply)
    try:
        return parse_status(reply.body)
    except ValueError as error:
        return Unanswered(f"{what}: {error}")


def _refused(raw: bytes) -> Refused | None:
    try:
        said = fields.read_object(raw, "the refusal")
    except ValueError:
        return None
    reason, message = said.get("reason"), said.get("message")
    if not isinstance(reason, str) or not isinstance(message, str) or not reason:
        return None
    return Refused(printable(reason, DETAIL_LIMIT), printable(message, DETAIL_LIMIT))


def _ranks(value: object) -> tuple[RankStatus, ...]:
    if not isinstance(value, list) or len(value) > MAX_RANKS:
        raise ValueError(f"ranks is not a list of at most {MAX_RANKS}")
    ranks = sorted((_rank(_object(one, "a rank")) for one in value), key=lambda rank: rank.index)
    if len({rank.index for rank in ranks}) != len(ranks):
        raise ValueError("two ranks have one index")
    return tuple(ranks)


def _rank(said: Mapping[str, object]) -> RankStatus:
    where = "ranks[]."
    return RankStatus(
        index=_number(said, "index", where),
        nonce=_text(said, "nonce", where),
        pool_tokens=_number(said, "pool_tokens", where),
        page_size=_number(said, "page_size", where),
        boot_input_limit=_number(said, "boot_input_limit", where),
        input_limit=_number(said, "input_limit", where),
        epoch=_number(said, "epoch", where),
        attested=attestation.attested(said),
    )


def _partners(value: object) -> tuple[Partner, ...]:
    if not isinstance(value, list):
        raise ValueError("partners is not a list")  # noqa: TRY004 - of the answer, not of our code
    return tuple(_partner(_object(one, "a partner")) for one in value)


def _partner(said: Mapping[str, object]) -> Partner:
    where, peer = "partners[].", fields.text(said.get("peer"))
    if peer is None:
        raise ValueError("partners[].peer is not a short text")
    return Partner(_text(said, "control", where), peer, _text(said, "key", where))


def _blown(said: Mapping[str, object]) -> Blown:
    return Blown(*(_text(said, name, "blown.") for name in ("finding", "kind", "source")))


def _door(said: Mapping[str, object]) -> DoorState:
    try:
        return DoorState(_text(said, "door"))
    except ValueError:
        raise ValueError(f"door is none of {', '.join(DoorState)}") from None


def _fault(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("fault is not a text")  # noqa: TRY004 - of the answer, not of our code
    return printable(value, DETAIL_LIMIT)


def _object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not an object")  # noqa: TRY004 - of the answer, not of our code
    return value


def _text(said: Mapping[str, object], name: str, where: str = "") -> str:
    value = fields.text(said.get(name))
    if not value:
        raise ValueError(f"{where}{name} is not a short text")
    return value


def _number(said: Mapping[str, object], name: str, where: str = "") -> int:
    value = fields.number(said.get(name))
    if value is None:
        raise ValueError(f"{where}{name} is not a whole number from 0")
    return value


def _truth(said: Mapping[str, object], name: str) -> bool:
    value = fields.truth(said.get(name))
    if value is None:
        raise ValueError(f"{name} is neither true nor false")
    return value


def _texts(said: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = fields.texts(said.get(name))
    if value is None:
        raise ValueError(f"{name} is not a list of short texts")
    return value
