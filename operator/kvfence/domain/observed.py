"""Everything that is known of a pool at one moment: what the gates and the plan are worked out from. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.advisory_gate import Judged, Watchlist
from kvfence.domain.capacity import Wanted
from kvfence.domain.verdicts import Outcome
from kvfence.domain.versions import DEFAULT_FLOORS, Declared, Floors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.api.v1alpha1.pool import PoolSpec
    from kvfence.api.v1alpha1.status import PoolStatus
    from kvfence.domain.engines import Engine, Partner
    from kvfence.domain.pods import PodFacts
    from kvfence.domain.verdicts import Verdict

Nonces = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Proof:
    """What checks said about one boot under one cap, in tokens."""

    cap: int
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """What earlier work found out. Kept in memory: after a restart of the operator it is found out again."""

    proofs: Mapping[Nonces, Proof] = field(default_factory=dict)
    """Of a boot, by its nonces, with a partner."""
    fronts: tuple[Verdict, ...] = ()
    """Of the routers' fronts, for the revision and the cap of now."""
    refusals: Mapping[Nonces, str] = field(default_factory=dict)
    """What a door said when it did not take its last admission."""

    def said(self, nonces: Nonces) -> tuple[Verdict, ...]:
        """Return the verdicts on a boot."""
        return self.proofs[nonces].verdicts if nonces in self.proofs else ()

    def is_condemned(self, nonces: Nonces) -> bool:
        """Whether a check saw in a boot what must not be: only another boot ends that."""
        return any(verdict.outcome is Outcome.FAILED for verdict in self.said(nonces))

    def is_proven(self, nonces: Nonces, cap: int) -> bool:
        """Whether every check of a boot passed under this cap."""
        proof = self.proofs.get(nonces)
        if proof is None or proof.cap != cap or not proof.verdicts:
            return False
        return all(verdict.outcome is Outcome.PASSED for verdict in proof.verdicts)

    def keeps_out(self, nonces: Nonces, cap: int) -> bool:
        """Whether a boot is not to be proven now: it failed, or it could not be judged under this cap just now."""
        proof = self.proofs.get(nonces)
        if proof is None or self.is_condemned(nonces):
            return proof is not None
        return proof.cap == cap and any(verdict.outcome is not Outcome.PASSED for verdict in proof.verdicts)


@dataclass(frozen=True, slots=True)
class Role:
    """A role of the revision."""

    name: str
    type: RoleType
    replicas: int


@dataclass(frozen=True, slots=True)
class Observed:
    """A pool at one moment, seen as one revision: what is asked for, or the one before where that is refused."""

    spec: PoolSpec
    status: PoolStatus
    revision: str
    roles: tuple[Role, ...]
    engines: tuple[Engine, ...] = ()
    """Of the revision; without those that are being deleted."""
    leaving: int = 0
    """Pods with engines that are being deleted, or are of another revision."""
    routers: tuple[PodFacts, ...] = ()
    """Router pods of the revision; without those that are being deleted."""
    known: Known = field(default_factory=Known)
    not_created: tuple[str, ...] = ()
    """Why Kubernetes makes no pods for a workload of the revision, in its own words: a quota, a pod security level."""
    taken: tuple[str, ...] = ()
    """Names of objects that are not the pool's, and that one of the pool's would need."""
    refused: tuple[str, ...] = ()
    """What the API server said when it did not take one of the pool's objects."""
    runs: bool = False
    """Whether the revision exists already."""
    serving: bool = False
    """Whether the revision was admitted before: the pool's own Service leads to it. The status is not asked: it can be
    wiped, restored or edited apart from what runs."""
    plugin_version: str = ""
    """Of kvfence-engine in the revision."""
    newest_plugin_version: str = ""
    """Of the one that the operator brings."""
    floors: Floors = DEFAULT_FLOORS
    judged: Judged = field(default_factory=Judged)
    """What known faults say about the release that the spec declares."""
    watchlist: Watchlist = field(default_factory=Watchlist)
    is_cut: bool = False
    """Whether an advisory takes the pool off traffic: the cluster's settings say from which severity, and how many."""

    @property
    def wanted(self) -> Wanted:
        """What the spec says about the context length."""
        return Wanted.of(self.spec)

    @property
    def declared(self) -> Declared:
        """What the spec says about the engine's version."""
        return Declared.of(self.spec)

    @property
    def applied_tokens(self) -> int | None:
        """The cap in force, which only goes down within the revision; `None` when there is none yet."""
        caps = [engine.boot.cap for engine in self.engines if engine.boot is not None and engine.boot.cap]
        on_offer = self.status.context_length
        told = self.serving and self.status.current_revision == self.revision
        if told and on_offer is not None and on_offer.advertised_tokens:
            caps.append(on_offer.advertised_tokens)
        return min(caps, default=None)

    @property
    def peers(self) -> tuple[str, ...]:
        """`host:port` of the prefill engines that decode engines may ask for KV."""
        prefill = (e for e in self.engines if e.type is RoleType.PREFILL and e.pod.ip and not e.is_shut)
        return tuple(sorted({engine.peer for engine in prefill}))

    def partners_of(self, engine: Engine) -> tuple[Partner, ...]:
        """The engines of the other leg that may tell this one of a taint, and are told; none for an older plugin."""
        if engine.boot is None or not engine.boot.key:
            return ()
        others = (other.partner for other in self.engines if other.type is not engine.type)
        return tuple(sorted((one for one in others if one is not None), key=lambda one: (one.control, one.key)))
