"""Everything that is known of a pool at one moment: what the gates and the plan are worked out from. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.capacity import Wanted
from kvfence.domain.verdicts import Outcome
from kvfence.domain.versions import DEFAULT_FLOORS, Declared, Floors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.api.v1alpha1.pool import PoolSpec
    from kvfence.api.v1alpha1.status import PoolStatus
    from kvfence.domain.engines import Engine
    from kvfence.domain.pods import PodFacts
    from kvfence.domain.verdicts import Verdict

Nonces = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """What earlier work found out. Kept in memory: after a restart of the operator it is found out again."""

    verdicts: Mapping[Nonces, tuple[Verdict, ...]] = field(default_factory=dict)
    """Of a boot, by its nonces, proven with a partner."""
    fronts: tuple[Verdict, ...] = ()
    """Of the routers' fronts, for the revision and the cap of now."""
    refusals: Mapping[Nonces, str] = field(default_factory=dict)
    """What a door said when it did not take its last admission."""

    def failed(self, nonces: Nonces) -> tuple[Verdict, ...]:
        """Return the verdicts on a boot that keep it out."""
        return tuple(v for v in self.verdicts.get(nonces, ()) if v.outcome is not Outcome.PASSED)

    def is_condemned(self, nonces: Nonces) -> bool:
        """Whether a check saw in a boot what must not be: only another boot ends that."""
        return any(verdict.outcome is Outcome.FAILED for verdict in self.failed(nonces))

    def is_proven(self, nonces: Nonces) -> bool:
        """Whether every check of a boot passed."""
        return bool(self.verdicts.get(nonces)) and not self.failed(nonces)


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
    runs: bool = False
    """Whether the revision exists already."""
    plugin_version: str = ""
    """Of kvfence-engine in the revision."""
    newest_plugin_version: str = ""
    """Of the one that the operator brings."""
    floors: Floors = DEFAULT_FLOORS

    @property
    def serving(self) -> bool:
        """Whether the revision was admitted before."""
        return self.status.current_revision == self.revision

    @property
    def wanted(self) -> Wanted:
        """What the spec says about the context length."""
        return Wanted.of(self.spec)

    @property
    def declared(self) -> Declared:
        """What the spec says about the engine's version."""
        sglang = self.spec.engine.sglang
        return Declared(sglang.version, sglang.minimum_version, self.spec.integrity.kv_checksum)

    @property
    def applied_tokens(self) -> int | None:
        """The cap in force, which only goes down within the revision; `None` when there is none yet."""
        caps = [engine.boot.cap for engine in self.engines if engine.boot is not None and engine.boot.cap]
        on_offer = self.status.context_length
        if self.serving and on_offer is not None and on_offer.advertised_tokens:  # 0: another revision came up since
            caps.append(on_offer.advertised_tokens)
        return min(caps, default=None)

    @property
    def peers(self) -> tuple[str, ...]:
        """`host:port` of the prefill engines that decode engines may ask for KV."""
        prefill = (engine for engine in self.engines if engine.type is RoleType.PREFILL and engine.pod.ip)
        return tuple(sorted({engine.peer for engine in prefill}))
