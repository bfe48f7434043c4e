"""What an admission says, how it is signed, and when it is refused. Pure.

An admission is JSON with sorted keys and no spaces. What is signed is `PREFIX` and then exactly these bytes; they
travel as they were signed, and text that means the same but is written otherwise is refused, so that nothing has two
forms. It names the boot it is for by the nonces of all its processes: a process draws its nonce when it starts, so an
admission that was right once is worth nothing to the next boot.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING

from kvfence_engine import ed25519
from kvfence_engine.state import Door, Grant, Partner

if TYPE_CHECKING:
    from collections.abc import Collection

PREFIX = b"kvfence admission 1\n"
"""Ahead of what is signed, so that a signature made for anything else is none here."""

SMALLEST_CAP = 8
"""With a cap of C the longest prompt has C - 7 tokens (`limits.longest_prompt`); less leaves none."""

_LARGEST_EPOCH = 2**53
_HASH = re.compile(r"[0-9a-f]{64}")
_KEY = re.compile(r"[A-Za-z0-9+/]{43}=")
_PEER = re.compile(r"[!-~]{1,253}:[0-9]{1,5}")


class Reason(str, Enum):
    """Why an admission is refused."""

    MALFORMED = "Malformed"
    NO_KEYS = "NoKeys"
    FORGED = "Forged"
    """No key that the engine knows made the signature."""
    FOREIGN_POOL = "ForeignPool"
    FOREIGN_POD = "ForeignPod"
    NOT_MEASURED = "NotMeasured"
    """The engine is still starting: not all of its processes have said who they are."""
    FOREIGN_BOOT = "ForeignBoot"
    """For another boot: the nonces differ."""
    EXPIRED = "Expired"
    OLD_EPOCH = "OldEpoch"
    """Replayed, or overtaken by a newer one."""
    FINAL = "Final"
    """The door is draining or tainted; only a new boot opens."""
    CAP_RAISED = "CapRaised"
    CAP_ABOVE_POOL = "CapAbovePool"
    NOT_APPLIED = "NotApplied"
    """Right, but not every process took the cap in time; the door did not open."""


@dataclass(frozen=True)
class Refusal:
    """The reason and a sentence for whoever reads the operator's message."""

    reason: Reason
    sentence: str


@dataclass(frozen=True)
class Admission:
    """One decision of the operator about one boot."""

    pool: str
    """UID of the InferencePool."""
    pod: str
    """UID of the pod."""
    nonces: tuple[str, ...]
    """Of all processes of the boot, in the order in which the launcher reports them."""
    epoch: int
    """Greater than that of every admission before."""
    door: Door
    """How the door stands afterwards."""
    cap: int
    """Tokens of context that the pool advertises."""
    peers: tuple[str, ...]
    """`host:port` of the prefill engines whose KV may be asked for."""
    passes: tuple[str, ...]
    """SHA-256 in hex of passes for canaries, each good for one request."""
    expires: int
    """Seconds since 1970, by the engine's clock."""
    partners: tuple[Partner, ...] = ()
    """Engines of the other leg, of the boots that run now; left out of the message when there are none."""


@dataclass(frozen=True)
class Boot:
    """What the launcher knows about the engine that it started."""

    pool: str
    pod: str
    nonces: tuple[str, ...]
    """Empty until all processes have said theirs."""
    smallest_pool: int
    """Tokens that the smallest KV pool of all ranks holds."""


def encode(admission: Admission) -> bytes:
    """Return the bytes that stand for it."""
    fields = asdict(admission)
    if not admission.partners:
        del fields["partners"]
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def decode(message: bytes) -> Admission:
    """Return what the bytes say.

    Raises:
        ValueError: when they are not exactly what `encode` makes of an admission.
    """
    try:
        fields = json.loads(message)
        lists = {name: tuple(fields[name]) for name in ("nonces", "peers", "passes")}
        partners = tuple(Partner(**one) for one in fields.get("partners", ()))
        admission = Admission(**{**fields, **lists, "partners": partners, "door": Door(fields["door"])})
    except (TypeError, KeyError, RecursionError) as error:
        raise ValueError("the fields are not those of an admission") from error
    _check(admission)
    if encode(admission) != message:
        raise ValueError("it is not in the one form that an admission has")
    return admission


def judge(message: bytes, signature: bytes, keys: Collection[bytes], boot: Boot, grant: Grant) -> Admission | Refusal:
    """Return the admission when it is genuine and may be applied to this boot; the clock is `expired`'s business.

    Args:
        message: as it came.
        signature: as it came.
        keys: public keys, two during a rotation.
        boot: the engine's.
        grant: what holds now.
    """
    if not keys:
        return Refusal(Reason.NO_KEYS, "this engine has no public key to check signatures with")
    if not any(ed25519.verify(key, PREFIX + message, signature) for key in keys):
        return Refusal(Reason.FORGED, "no key that this engine knows made the signature")
    try:
        admission = decode(message)
    except ValueError as error:
        return Refusal(Reason.MALFORMED, f"the admission cannot be read: {error}")
    return _foreign(admission, boot) or _late(admission, grant) or _too_much(admission, boot, grant) or admission


def expired(admission: Admission, now: float) -> Refusal | None:
    """Refuse what came too late, by the engine's clock."""
    if now > admission.expires:
        late = now - admission.expires
        return Refusal(Reason.EXPIRED, f"the admission ended {late:.0f} s ago by this engine's clock")
    return None


def granted(admission: Admission) -> Grant:
    """Return what holds once the admission is applied."""
    return Grant(admission.door, admission.epoch, admission.cap, admission.peers, admission.passes, admission.partners)


def _foreign(admission: Admission, boot: Boot) -> Refusal | None:
    if admission.pool != boot.pool:
        return Refusal(Reason.FOREIGN_POOL, "the admission is for another pool")
    if admission.pod != boot.pod:
        return Refusal(Reason.FOREIGN_POD, "the admission is for another pod")
    if not boot.nonces:
        return Refusal(Reason.NOT_MEASURED, "the engine is still starting, its KV pool is not measured yet")
    if admission.nonces != boot.nonces:
        return Refusal(Reason.FOREIGN_BOOT, "the admission is for another boot: the nonces are not this one's")
    return None


def _late(admission: Admission, grant: Grant) -> Refusal | None:
    if admission.epoch <= grant.epoch:
        return Refusal(Reason.OLD_EPOCH, f"epoch {admission.epoch} is not newer than epoch {grant.epoch} that holds")
    if grant.door.is_final:
        return Refusal(Reason.FINAL, f"the door is {grant.door.value}, which only a new boot ends")
    return None


def _too_much(admission: Admission, boot: Boot, grant: Grant) -> Refusal | None:
    if grant.cap and admission.cap > grant.cap:
        return Refusal(Reason.CAP_RAISED, f"{admission.cap} tokens are more than the {grant.cap} that this boot has")
    if admission.cap > boot.smallest_pool:
        return Refusal(
            Reason.CAP_ABOVE_POOL, f"{admission.cap} tokens are more than the {boot.smallest_pool} of the KV pool"
        )
    return None


def _check(admission: Admission) -> None:
    """Types and ranges; JSON has its own ideas of both."""
    texts: tuple[object, ...] = (admission.pool, admission.pod, *admission.nonces, *admission.peers, *admission.passes)
    if not all(isinstance(text, str) and text for text in texts):
        raise ValueError("a name, nonce, peer or pass is no text")
    if not all(type(number) is int for number in (admission.epoch, admission.cap, admission.expires)):
        raise ValueError("epoch, cap or expiry is no whole number")
    if not 0 < admission.epoch < _LARGEST_EPOCH or not 0 <= admission.expires < _LARGEST_EPOCH:
        raise ValueError("epoch or expiry is out of range")
    if not SMALLEST_CAP <= admission.cap < _LARGEST_EPOCH:
        raise ValueError(f"a cap has at least {SMALLEST_CAP} tokens")
    if not all(_PEER.fullmatch(peer) for peer in admission.peers):
        raise ValueError("a peer is not host:port")
    if not all(_HASH.fullmatch(one) for one in admission.passes):
        raise ValueError("a pass is not a SHA-256 in hex")
    for partner in admission.partners:
        _check_partner(partner)


def _check_partner(partner: Partner) -> None:
    if not all(isinstance(text, str) for text in (partner.control, partner.peer, partner.key)):
        raise ValueError("a partner's address or key is no text")
    if not _PEER.fullmatch(partner.control) or not (partner.peer == "" or _PEER.fullmatch(partner.peer)):
        raise ValueError("a partner is not at host:port")
    if not _KEY.fullmatch(partner.key):
        raise ValueError("a partner's key is not 32 bytes in base64")
