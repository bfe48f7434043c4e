"""The state of one boot's door, in memory that the launcher and every process of the engine share.

Each record has one writer: the launcher writes the grant, the HTTP process writes about itself, each rank writes about
itself. The memory has no name in any file system: it is a memfd of the launcher, which the engine's processes open
through `/proc`. So a new launcher begins with a closed door whatever the old one left, and nothing is left to clean up.
"""

from __future__ import annotations

import json
import mmap
import os
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from kvfence_engine.memory import Record

MAX_RANKS = 256
_GRANT_BYTES = 64 * 1024
_BLOWN_BYTES = 1024
"""Of the record of a grant, kept free for why the fuse blew: whatever was granted can be taken back."""
_PROCESS_BYTES = 4096
_FAULT_BYTES = 1024
_ALARM_BYTES = 512
_RECEIPT_BYTES = 16 * 1024


class Door(str, Enum):
    """Who may pass."""

    CLOSED = "closed"
    """Nobody; so it begins."""
    CANARY = "canary"
    """Requests that carry a pass which was not used yet."""
    OPEN = "open"
    DRAINING = "draining"
    """Nobody any more; what is in flight goes on. Final in this boot."""
    TAINTED = "tainted"
    """Nobody, since this process may have shown a user what belongs to another. Final in this boot."""

    @property
    def is_final(self) -> bool:
        """Whether only another boot can follow."""
        return self in (Door.DRAINING, Door.TAINTED)


@dataclass(frozen=True)
class Partner:
    """An engine of the other leg, as an admission names it: it may say that it is tainted, and is told."""

    control: str
    """`host:port` of its launcher."""
    peer: str
    """`host:port` by which requests name it when it is a prefill engine; empty for a decode engine."""
    key: str
    """Its boot's public key, in base64; its launcher drew the other half when it started."""


@dataclass(frozen=True)
class Blown:
    """Why the fuse of this boot is blown. Nothing but a new boot mends it."""

    finding: str
    """`Escaped` or `Contained`; see `integrity.classes`."""
    kind: str
    """What was found; one word."""
    source: str
    """Where: `rank 3`, or `partner HOST:PORT` which said so."""
    time: float
    """Seconds since 1970."""


@dataclass(frozen=True)
class Grant:
    """What the launcher lets this boot do."""

    door: Door = Door.CLOSED
    epoch: int = 0
    """Of the last admission that was accepted; never steps back."""
    cap: int = 0
    """Tokens of context, 0 before the first admission."""
    peers: tuple[str, ...] = ()
    """`host:port` of the prefill engines whose KV may be asked for."""
    passes: tuple[str, ...] = ()
    """SHA-256 in hex of the passes that the door knows while it is on canary."""
    partners: tuple[Partner, ...] = ()
    blown: Blown | None = None
    """Why the door is tainted, if it is."""


@dataclass(frozen=True)
class Server:
    """What the HTTP process says about itself."""

    pid: int
    nonce: str
    sglang: str
    """Version that runs."""
    ranks: int = 0
    """How many there must be, as the engine's own configuration says; 0 until that is known."""
    serving: bool = False
    """Whether the door stands in the application that answers, with all ranks there."""
    epoch: int = 0
    """Of the cap that this process applied last."""
    asked: tuple[str, ...] = ()
    """The last nonces of those who asked it for evidence, the newest last; ranks repeat them."""


@dataclass(frozen=True)
class Rank:
    """What one scheduler process says about itself, after its KV pool got its final size."""

    index: int
    pid: int
    nonce: str
    pool_tokens: int
    """That its KV pool holds; less when pages of it are retired."""
    page_size: int
    boot_input_limit: int
    """`max_req_input_len` as the engine computed it from its own context and pool, before any cap."""
    input_limit: int
    """Prompts must be shorter than this, in tokens: the same, lowered when a cap is applied."""
    epoch: int = 0
    """Of the cap that this process applied last."""
    integrity: dict[str, Any] = field(default_factory=dict)
    """Which defences of the KV are on in this rank, and what they counted."""
    attested: tuple[str, ...] = ()
    """Nonces of `Server.asked` that this rank has seen: whoever drew one knows that all this is of now."""


@dataclass(frozen=True)
class Alarm:
    """What one rank has found so far that the fuse must know of; counts only go up."""

    contained: int = 0
    """Findings that were caught before the first token."""
    kind: str = ""
    """Of the last of them."""
    isolated: str = ""
    """Kind of a finding that isolates this engine at once although nothing escaped."""
    escaped: str = ""
    """Kind of the first finding that came too late, empty when there is none."""
    peer: str = ""
    """`host:port` of the prefill engine of the request that it was found in; empty when there is none."""


class SharedState:
    """Reads and writes the records. Every read is the newest whole value.

    Raises, on reading: `memory.TornError`; `ValueError` when a record is not what it should be.
    """

    def __init__(self, descriptor: int, path: str) -> None:
        self.path = path
        """Under which another process of the same user opens it, as long as the launcher lives."""
        self._memory = mmap.mmap(descriptor, _SIZE)
        self._grant = Record(self._memory, 0, _GRANT_BYTES)
        self._server = Record(self._memory, _SERVER, _PROCESS_BYTES)
        self._fault = Record(self._memory, _FAULT, _FAULT_BYTES)
        self._ranks = self._records(_RANKS, _PROCESS_BYTES)
        self._alarms = self._records(_ALARMS, _ALARM_BYTES)
        self._receipts = self._records(_RECEIPTS, _RECEIPT_BYTES)
        self._known: tuple[bytes, Grant] = (b"", Grant())

    def _records(self, start: int, capacity: int) -> list[Record]:
        """Return one record for each rank."""
        return [Record(self._memory, start + i * Record.size(capacity), capacity) for i in range(MAX_RANKS)]

    @classmethod
    def create(cls) -> SharedState:
        """Make the memory; it lives as long as this process, or others that opened it."""
        descriptor = os.memfd_create("kvfence-door")
        os.ftruncate(descriptor, _SIZE)
        return cls(descriptor, f"/proc/{os.getpid()}/fd/{descriptor}")

    @classmethod
    def open(cls, path: str) -> SharedState:
        """Open what another process made.

        Raises:
            OSError: when it is gone or belongs to another user.
        """
        descriptor = os.open(path, os.O_RDWR)
        try:
            return cls(descriptor, path)
        finally:
            os.close(descriptor)

    def grant(self) -> Grant:
        """Return what is granted now. Called for each request, so the same bytes are parsed once."""
        raw, known = self._grant.read(), self._known
        if raw != known[0]:
            fields = json.loads(raw)
            self._known = known = raw, _grant(fields)
        return known[1]  # of this thread: another may have read an older one meanwhile

    def set_grant(self, grant: Grant) -> None:
        """Of the launcher alone.

        Raises:
            ValueError: when peers, partners and passes are too many to fit.
        """
        if grant.blown is None and not fits(grant):
            raise ValueError("a grant must leave room to take it back")
        self._grant.write(_json(asdict(grant)))

    def server(self) -> Server | None:
        """Return what the HTTP process said; none before it did."""
        raw = self._server.read()
        if not raw:
            return None
        fields = json.loads(raw)
        return Server(**{**fields, "asked": tuple(fields["asked"])})

    def set_server(self, server: Server) -> None:
        """Of the HTTP process alone."""
        self._server.write(_json(asdict(server)))

    def ranks(self) -> tuple[Rank, ...]:
        """Return what the ranks said so far, in the order of their index."""
        return tuple(_rank(json.loads(raw)) for record in self._ranks if (raw := record.read()))

    def set_rank(self, rank: Rank) -> None:
        """Of that rank alone.

        Raises:
            ValueError: when its index is out of range.
        """
        if not 0 <= rank.index < MAX_RANKS:
            raise ValueError(f"rank {rank.index} is not below {MAX_RANKS}")
        self._ranks[rank.index].write(_json(asdict(rank)))

    def alarm(self, index: int) -> Alarm:
        """Return what a rank has found so far. Looked at often, so kept cheap: most never find anything."""
        raw = self._alarms[index].read()
        return Alarm(**json.loads(raw)) if raw else Alarm()

    def set_alarm(self, index: int, alarm: Alarm) -> None:
        """Of that rank alone."""
        self._alarms[index].write(_json(asdict(alarm)))

    def receipts(self, index: int) -> list[dict[str, Any]]:
        """Return the receipts of a rank's last canaries, the newest last; see `integrity.receipts`."""
        raw = self._receipts[index].read()
        return list(json.loads(raw)) if raw else []

    def set_receipts(self, index: int, receipts: list[dict[str, Any]]) -> None:
        """Of that rank alone.

        Raises:
            ValueError: when they do not fit.
        """
        self._receipts[index].write(json.dumps(receipts, separators=(",", ":")).encode())

    def fault(self) -> str:
        """Return why a process of the engine gave up; empty when none did."""
        return self._fault.read().decode()

    def set_fault(self, why: str) -> None:
        """Leave the reason; a process calls this just before it ends."""
        self._fault.write(why.encode()[:_FAULT_BYTES].decode(errors="ignore").encode())


def fits(grant: Grant) -> bool:
    """Whether there is room for all that a grant names, and for what would take it back."""
    return len(_json(asdict(grant))) <= _GRANT_BYTES - _BLOWN_BYTES


def stored_at(path: str) -> int:
    """Return the pid of the launcher that made the memory behind `path`.

    Raises:
        ValueError: when the path is none of ours.
    """
    match Path(path).parts:
        case ("/", "proc", pid, "fd", _):
            return int(pid)
    raise ValueError("the path of the door's state is not /proc/PID/fd/N")


def _grant(fields: dict[str, Any]) -> Grant:
    lists = {name: tuple(fields[name]) for name in ("peers", "passes")}
    partners = tuple(Partner(**one) for one in fields["partners"])
    blown = None if fields["blown"] is None else Blown(**fields["blown"])
    return Grant(**{**fields, **lists, "partners": partners, "blown": blown, "door": Door(fields["door"])})


def _rank(fields: dict[str, Any]) -> Rank:
    return Rank(**{**fields, "attested": tuple(fields["attested"])})


def _json(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


_SERVER = Record.size(_GRANT_BYTES)
_FAULT = _SERVER + Record.size(_PROCESS_BYTES)
_RANKS = _FAULT + Record.size(_FAULT_BYTES)
_ALARMS = _RANKS + MAX_RANKS * Record.size(_PROCESS_BYTES)
_RECEIPTS = _ALARMS + MAX_RANKS * Record.size(_ALARM_BYTES)
_SIZE = _RECEIPTS + MAX_RANKS * Record.size(_RECEIPT_BYTES)
