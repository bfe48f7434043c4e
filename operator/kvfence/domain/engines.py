"""What is known of one engine: its pod as the kubelet has it, its boot as its door tells it, its server's facts.

Pure values; `controller.gathering` fills them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.advisory_gate import Judged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.domain.pods import PodFacts


class DoorState(StrEnum):
    """Who may pass the door of an engine; kvfence-engine has the same words."""

    CLOSED = "closed"
    CANARY = "canary"
    """Requests that carry a pass which was not used yet."""
    OPEN = "open"
    DRAINING = "draining"
    """Nobody any more; final in this boot."""
    TAINTED = "tainted"
    """Nobody any more, since an isolation defence tripped; final in this boot."""


CONTROL_PORT = 8901
"""Of the launcher of kvfence-engine."""

FINAL = frozenset({DoorState.DRAINING, DoorState.TAINTED})


@dataclass(frozen=True, slots=True)
class Attested:
    """What one rank says of the defences of kvfence-engine in it."""

    version: str
    """Of kvfence-engine."""
    self_tested: bool
    """Whether it saw a fault caught on its own pool when it started."""
    modes: Mapping[str, str]
    """By the names and words of `spec.integrity`."""
    nonces: tuple[str, ...]
    """Of the last who asked its server for evidence; whoever drew one knows that this rank answered after that."""
    counts: Mapping[str, int]
    """`pagesExpected`, `pagesVerified` and so on, since it started."""
    found: Mapping[str, int]
    """What was wrong with KV that requests were about to read, by kind."""


@dataclass(frozen=True, slots=True)
class Partner:
    """An engine of the other leg, as an admission names it."""

    control: str
    """`host:port` of its launcher."""
    peer: str
    """`host:port` of the bootstrap server of a prefill engine; empty for a decode engine."""
    key: str
    """Public key of its boot, in base64."""


@dataclass(frozen=True, slots=True)
class Blown:
    """Why the fuse of an engine is blown."""

    finding: str
    """`Escaped` or `Contained`."""
    kind: str
    source: str
    """`rank N`, or `partner HOST:PORT`."""


@dataclass(frozen=True, slots=True)
class Rank:
    """The KV pool of one scheduler process, in tokens."""

    index: int
    pool_tokens: int
    page_size: int
    boot_input_limit: int
    """`max_req_input_len` before any cap."""
    attested: Attested | None = field(default=None, hash=False)
    """None when it says nothing of defences that can be read: an older kvfence-engine."""


@dataclass(frozen=True, slots=True)
class Boot:
    """One start of an engine. Another start has other nonces, and nothing that was true of this one is true of it."""

    nonces: tuple[str, ...]
    """Of all its processes."""
    door: DoorState
    epoch: int
    """Of the last admission that it took."""
    cap: int
    """Tokens of context; 0 before the first admission."""
    peers: tuple[str, ...]
    """`host:port` of the prefill engines whose KV it may ask for."""
    sglang: str | None
    ranks: tuple[Rank, ...]
    applied: bool = False
    """Whether every process of the engine has taken the cap of that admission; a door tells it as granted before."""
    key: str = ""
    """By which its partners know its word; empty for an older kvfence-engine, which knows no partners."""
    partners: tuple[Partner, ...] = ()
    """As it was told them."""
    blown: Blown | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What the running server says of itself; `None` is what it does not say."""

    version: str | None = None
    kv_checksum: bool | None = None
    reserved_decode_tokens: int | None = None
    auto_truncates: bool | None = None
    repeats_nonce: bool = False
    """Whether every rank repeated what was drawn when the server was asked."""
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    """What else it says of its own configuration, by SGLang's names, as far as an advisory may ask for it."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine of the revision that is coming up or serves."""

    pod: PodFacts
    type: RoleType
    bootstrap_port: int
    boot: Boot | None = None
    """None while it starts, and when its door does not answer."""
    facts: Facts | None = None
    """None as long as its server was not asked, or did not answer."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """Variables that its pod sets in clear; what its image sets besides is not known."""
    judged: Judged = field(default_factory=Judged, repr=False, hash=False)
    """What known faults say about it; nothing as long as there are no facts."""
    silent: str = ""
    """Why there is no boot or there are no facts, as part of a sentence."""
    unheard: bool = False
    """Whether nothing came back from its door: it may be the network between us, and says nothing about the engine."""

    @property
    def name(self) -> str:
        """Name of the pod."""
        return self.pod.name

    @property
    def peer(self) -> str:
        """How it is named in requests to decode engines: `host:port` of its bootstrap server."""
        return f"{self.pod.ip}:{self.bootstrap_port}"

    @property
    def partner(self) -> Partner | None:
        """How it is named to the engines of the other leg; none while it says no key, or is shut for good."""
        if self.boot is None or not self.boot.key or self.is_shut or not self.pod.ip:
            return None
        host = f"[{self.pod.ip}]" if ":" in self.pod.ip else self.pod.ip
        peer = self.peer if self.type is RoleType.PREFILL else ""
        return Partner(f"{host}:{CONTROL_PORT}", peer, self.boot.key)

    @property
    def is_open(self) -> bool:
        """Whether users' requests are let in."""
        return self.boot is not None and self.boot.door is DoorState.OPEN

    @property
    def is_let_in(self) -> bool:
        """Whether it serves, as far as is known: its door says so, or is not heard by us while the kubelet, whose
        readiness probe asks the same door, goes on to say so.
        """
        return self.is_open or (self.unheard and self.pod.started and self.pod.ready)

    @property
    def is_shut(self) -> bool:
        """Whether nobody is let in any more in this boot, whatever is told to its door."""
        return self.boot is not None and self.boot.door in FINAL
