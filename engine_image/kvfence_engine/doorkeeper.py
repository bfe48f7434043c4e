"""The launcher's part: takes admissions, opens and closes the door, and says how things stand.

An admission is applied in an order in which nothing is let in too early: what it takes away at once, its cap next, and
what it gives only when every process of the engine has said that it applied the cap.
"""

from __future__ import annotations

import base64
import secrets
import sys
import threading
import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from kvfence_engine import __version__, admission, ed25519, signed, taint
from kvfence_engine.admission import Boot, Reason, Refusal
from kvfence_engine.integrity.classes import Finding
from kvfence_engine.memory import TornError
from kvfence_engine.state import Blown, Door, Grant, SharedState, fits

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kvfence_engine.admission import Admission

APPLY_SECONDS = 60.0
"""How long all processes may take to apply a cap. A rank does it between two batches, so a long prefill holds it up."""

_LOOK_SECONDS = 0.02
_ORDER = (Door.CLOSED, Door.CANARY, Door.OPEN)
_STATUS = {
    Reason.MALFORMED: 400,
    Reason.NO_KEYS: 403,
    Reason.FORGED: 403,
    Reason.FOREIGN_POOL: 403,
    Reason.FOREIGN_POD: 403,
    Reason.NOT_MEASURED: 503,
    Reason.NOT_APPLIED: 504,
}


@dataclass(frozen=True)
class Identity:
    """Whose engine this is; from the pod's own environment, so that no admission for another fits."""

    pool: str
    pod: str
    keys: Path
    """Folder with public keys, one file each: 32 bytes in base64. Read for each admission: a rotation restarts nothing.
    """


@dataclass(frozen=True)
class Reply:
    """An HTTP answer in JSON."""

    status: int
    body: dict[str, Any]


class Doorkeeper:
    """Of one boot; its methods may be called from any thread.

    Args:
        state: the boot's; nobody else writes its grant.
        identity: whose engine it is.
        on_admission: called with each admission before any of it holds.
    """

    def __init__(self, state: SharedState, identity: Identity, on_admission: Callable[[], None]) -> None:
        self._state = state
        self._identity = identity
        self._on_admission = on_admission
        self._admitting = threading.Lock()
        self._believing = threading.Lock()
        self._writing = threading.Lock()
        self._seed = secrets.token_bytes(ed25519.KEY_BYTES)
        self._key = base64.b64encode(ed25519.public_key(self._seed)).decode()
        state.set_grant(Grant())

    def admit(self, body: bytes) -> Reply:
        """Judge and apply an admission, and return when it is applied or was refused.

        Args:
            body: `{"message": BASE64, "signature": BASE64}`; see `admission` for the message.
        """
        with self._admitting:
            judged = self._judge(body)
            if not isinstance(judged, Refusal):
                judged = self._apply(judged) or judged
            if isinstance(judged, Refusal):
                return Reply(
                    _STATUS.get(judged.reason, 409), {"reason": judged.reason.value, "message": judged.sentence}
                )
        return Reply(200, self.status())

    def status(self) -> dict[str, Any]:
        """Return how things stand: door, who the processes are, what they measured and applied."""
        grant, server = self._state.grant(), self._state.server()
        return {
            "version": __version__,
            "pool": self._identity.pool,
            "pod": self._identity.pod,
            "door": grant.door.value,
            "epoch": grant.epoch,
            "cap": grant.cap,
            "peers": list(grant.peers),
            "partners": [asdict(partner) for partner in grant.partners],
            "blown": None if grant.blown is None else asdict(grant.blown),
            "key": self._key,
            "started": self.has_started(),
            "nonces": list(self._boot().nonces),
            "server": None if server is None else asdict(server),
            "ranks": [asdict(rank) for rank in self._state.ranks()],
            "fault": self._state.fault() or None,
        }

    def has_started(self) -> bool:
        """Whether the engine serves, with the door in all its processes and every pool measured."""
        server = self._state.server()
        return server is not None and server.serving and len(self._state.ranks()) == server.ranks

    def is_open(self) -> bool:
        """Whether users' requests are let in."""
        return self._state.grant().door is Door.OPEN and self.has_started()

    def shut(self, door: Door) -> None:
        """Close or drain at once. A door that is shut for good stays as it is."""
        with self._writing:
            grant = self._state.grant()
            if not grant.door.is_final:
                self._state.set_grant(replace(grant, door=door))

    def blow(self, finding: Finding, kind: str, source: str) -> None:
        """Taint this boot: whatever the door was, nobody passes it any more. What escaped outdoes what was contained.

        Args:
            finding: Contained or Escaped.
            kind: what was found; one word.
            source: where.
        """
        with self._writing:
            grant = self._state.grant()
            if grant.blown is not None and (grant.blown.finding == finding or finding is not Finding.ESCAPED):
                return
            blown = Blown(finding.value, kind, source, time.time())
            self._state.set_grant(replace(grant, door=Door.TAINTED, blown=blown))
        _say(f"{finding.value}: {kind}, found by {source}; this engine is closed until it is started anew")

    def told(self, body: bytes) -> Reply:
        """Take a partner's word that it is tainted, and be so too; it is not told on."""
        with self._believing:  # one at a time: many that are forged must not keep the watch from its share of the CPU
            judged = taint.judge(body, self._identity.pool, self._state.grant().partners)
        if isinstance(judged, taint.Disbelieved):
            status = 400 if judged.reason == "Malformed" else 403
            return Reply(status, {"reason": judged.reason, "message": judged.sentence})
        partner, said = judged
        self.blow(Finding.ESCAPED, said.kind, f"partner {partner.control}")
        return Reply(200, {"door": self._state.grant().door.value})

    def taint(self, kind: str) -> bytes:
        """Return what this boot says to its partners about itself, signed."""
        said = taint.Taint(kind, self._key, self._identity.pod, self._identity.pool)
        return taint.sign(said, self._seed)

    def receipts(self, rid: str) -> Reply:
        """Return what the ranks kept of one canary, by the id that it gave its request."""
        ranks = [rank.index for rank in self._state.ranks()]
        found = [one for index in ranks for one in self._state.receipts(index) if one.get("rid") == rid]
        if not found:
            return Reply(404, {"message": "no rank has a receipt for this rid: only canaries get one, for a while"})
        return Reply(200, {"receipts": found})

    def _judge(self, body: bytes) -> Admission | Refusal:
        try:
            message, signature = signed.unpack(body)
        except ValueError as error:
            return Refusal(Reason.MALFORMED, str(error))
        judged = admission.judge(message, signature, self._keys(), self._boot(), self._state.grant())
        if isinstance(judged, Refusal):
            return judged
        return admission.expired(judged, time.time()) or judged

    def _apply(self, admitted: Admission) -> Refusal | None:
        wanted = admission.granted(admitted)
        if not fits(wanted):
            return Refusal(Reason.MALFORMED, "peers, partners and passes are too many: they do not fit into the door")
        self._on_admission()
        with self._writing:
            now = self._state.grant()
            door = now.door
            meanwhile = (
                min(door, wanted.door, key=_ORDER.index) if door in _ORDER and wanted.door in _ORDER else wanted.door
            )
            self._state.set_grant(replace(wanted, door=door if door.is_final else meanwhile, blown=now.blown))
        deadline = time.monotonic() + APPLY_SECONDS
        while not self._is_applied(wanted):
            if time.monotonic() > deadline:
                return Refusal(Reason.NOT_APPLIED, f"not every process applied the cap within {APPLY_SECONDS:.0f} s")
            time.sleep(_LOOK_SECONDS)
        with self._writing:
            now = self._state.grant()
            if now.blown is not None or (now.door.is_final and not wanted.door.is_final):
                return Refusal(Reason.FINAL, "the door was shut for good while the cap was applied")
            self._state.set_grant(wanted)
        return None

    def _is_applied(self, grant: Grant) -> bool:
        server, ranks = self._state.server(), self._state.ranks()
        if server is None or server.epoch != grant.epoch:
            return False
        return all(rank.epoch == grant.epoch and rank.input_limit < grant.cap for rank in ranks)

    def _boot(self) -> Boot:
        try:
            server, ranks = self._state.server(), self._state.ranks()
        except (TornError, ValueError):
            server, ranks = None, ()
        nonces = (server.nonce, *(rank.nonce for rank in ranks)) if server and self.has_started() else ()
        smallest = min((rank.pool_tokens for rank in ranks), default=0)
        return Boot(self._identity.pool, self._identity.pod, nonces, smallest)

    def _keys(self) -> list[bytes]:
        try:
            files = sorted(path for path in self._identity.keys.iterdir() if path.is_file())
        except OSError:
            return []
        return [key for path in files if not path.name.startswith(".") and (key := _key(path)) is not None]


def _say(line: str) -> None:
    sys.stderr.write(f"kvfence-engine: {line}\n")  # in one piece: other threads say something too


def _key(path: Path) -> bytes | None:
    """Return the key in a file; what is no key is none, and an engine without any admits nobody."""
    try:
        key = signed.public_key(path.read_bytes().strip())
    except OSError:
        return None
    return key if key is not None and len(key) == ed25519.KEY_BYTES else None
