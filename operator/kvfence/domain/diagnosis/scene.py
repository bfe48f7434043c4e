"""What was seen, put together as it runs: servers with their ranks, and what serves together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.advisories.conditions import FALSE_WORDS
from kvfence.domain.advisories.judging import release
from kvfence.domain.capacity import INPUT_MARGIN, Measured, PoolId, Wanted, context_that_fits
from kvfence.domain.diagnosis.seen import EngineSeen, Product, RouterSeen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from packaging.version import Version

    from kvfence.domain.diagnosis.seen import Seen

HALVES = {RoleType.PREFILL, RoleType.DECODE}


@dataclass(frozen=True, slots=True)
class Server:
    """One engine with all its ranks."""

    source: str
    ranks: tuple[EngineSeen, ...]
    """At least one."""

    @property
    def first(self) -> EngineSeen:
        """The rank that stands for what all of them have."""
        return self.ranks[0]

    @property
    def role(self) -> RoleType | None:
        """Prefill or decode, unified for one without a partner."""
        return self.first.role

    @property
    def in_pair(self) -> bool:
        """Whether it says that it is a half of a pair."""
        return self.role in HALVES

    @property
    def named_in(self) -> frozenset[str]:
        """The pairs in which somebody named it."""
        return frozenset(rank.pair for rank in self.ranks if rank.pair is not None)

    @property
    def product(self) -> Product | None:
        """Who made it."""
        return self.first.product

    @property
    def settings(self) -> Mapping[str, Any]:
        """By SGLang's names, as far as told."""
        return self.first.settings

    @property
    def environment(self) -> Mapping[str, str]:
        """Of its process, as far as told."""
        return self.first.environment

    @property
    def release(self) -> Version | None:
        """Its version, where that is a release; none when it is not told or nobody can say what is in it."""
        return release(self.first.version)

    def on(self, setting: str) -> bool | None:
        """Whether a setting is on; none when it is not told."""
        value = self.settings.get(setting)
        return value if isinstance(value, bool) else None

    def variable_on(self, name: str) -> bool | None:
        """Whether a variable of its environment is on; none when it is not told."""
        value = self.environment.get(name)
        return None if value is None else value.strip().casefold() not in FALSE_WORDS

    def older_than(self, version: Version) -> bool:
        """Whether it is known to be older than a release."""
        return self.release is not None and self.release < version

    @property
    def measured(self) -> tuple[EngineSeen, ...]:
        """The ranks whose pools are told, the smallest first. An engine that did not start has none."""
        told = [rank for rank in self.ranks if rank.kv_pool_tokens is not None and rank.started is not False]
        return tuple(sorted(told, key=lambda rank: rank.kv_pool_tokens or 0))

    @property
    def offers(self) -> int | None:
        """The largest context that all of its ranks can keep, in tokens; none when no pool is told."""
        return min(map(_fits, self.measured), default=None)


@dataclass(frozen=True, slots=True)
class Scene:
    """All that was seen at once. Halves that are named as a pair serve together; of others their model's name tells."""

    servers: tuple[Server, ...]
    routers: tuple[RouterSeen, ...]

    def role(self, role: RoleType) -> tuple[Server, ...]:
        """Return the servers of a role."""
        return tuple(server for server in self.servers if server.role is role)

    @property
    def halves(self) -> tuple[Server, ...]:
        """The servers that are halves of pairs."""
        return tuple(server for server in self.servers if server.in_pair)

    @property
    def pairs(self) -> tuple[tuple[Server, Server], ...]:
        """Each prefill server with each decode server."""
        return tuple((p, d) for p in self.role(RoleType.PREFILL) for d in self.role(RoleType.DECODE))

    def apart(self) -> tuple[Scene, ...]:
        """Return what serves apart from each other: pairs that were named, pairs of different models, and the rest.

        Halves that nobody named as a pair, and of which a model's name has only one kind, belong together: then the
        names are what is wrong.
        """
        named = [server for server in self.servers if server.named_in]
        by_model: dict[str, list[Server]] = {}
        for server in self.halves:
            if not server.named_in:
                by_model.setdefault(str(server.settings.get("served_model_name")), []).append(server)
        unnamed = list(by_model.values())
        if any({server.role for server in group} != HALVES for group in unnamed):
            unnamed = [[one for one in self.halves if not one.named_in]]
        alone = [server for server in self.servers if not server.in_pair and not server.named_in]
        return tuple(Scene(tuple(group), ()) for group in (*_joined(named), *unnamed, alone) if group)

    def half_pairs(self) -> tuple[tuple[Server, ...], ...]:
        """Return what serves as a pair, or was named as one, without an engine that says it is the one or the other."""
        found = (tuple(one for one in part.servers if one.in_pair or one.named_in) for part in self.apart())
        return tuple(group for group in found if group and {server.role for server in group} & HALVES != HALVES)

    def together(self, server: Server) -> tuple[Server, ...]:
        """Return the servers that one request may pass together with this one, itself among them."""
        return self.halves if server.in_pair else (server,)

    def offers(self, server: Server) -> int | None:
        """Return the largest context that this server and all beside it can keep; none when no pool is told."""
        told = [offer for one in self.together(server) if (offer := one.offers) is not None]
        return min(told, default=None)


def scene_of(seen: Iterable[Seen]) -> Scene:
    """Put together what belongs together: ranks of one source, also where it was named in several pairs."""
    engines: dict[str, list[EngineSeen]] = {}
    routers: list[RouterSeen] = []
    for one in seen:
        if isinstance(one, EngineSeen):
            engines.setdefault(one.source, []).append(one)
        elif isinstance(one, RouterSeen):
            routers.append(one)
    return Scene(tuple(Server(source, tuple(ranks)) for source, ranks in engines.items()), tuple(routers))


def _joined(servers: Sequence[Server]) -> list[list[Server]]:
    """Group servers by the pairs in which they were named: one that was named in two of them joins these."""
    groups: list[tuple[frozenset[str], list[Server]]] = []
    for server in servers:
        mine = [group for group in groups if group[0] & server.named_in]
        groups = [group for group in groups if group not in mine]
        names = server.named_in.union(*(group[0] for group in mine))
        groups.append((names, [*(one for group in mine for one in group[1]), server]))
    return [group for _, group in groups]


def places(ranks: Sequence[EngineSeen]) -> str:
    """Return where: the source, and which of its ranks if it has several."""
    numbers = sorted({one.rank for one in ranks if one.rank is not None})
    source = ranks[0].source
    if not numbers:
        return source
    return f"{source} ({'rank' if len(numbers) == 1 else 'ranks'} {', '.join(_runs(numbers))})"


def _runs(numbers: Sequence[int]) -> Iterator[str]:
    """Ranks that follow each other are named by the first and the last: a server may have hundreds."""
    begins = [at for at, number in enumerate(numbers) if at == 0 or numbers[at - 1] != number - 1]
    for begin, end in zip(begins, [*begins[1:], len(numbers)], strict=True):
        run = numbers[begin:end]
        yield from [f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run)


def _fits(rank: EngineSeen) -> int:
    """What `kvfence.domain.capacity` says of this pool alone, nothing kept back for growth.

    Where decode does not tell what it keeps back, nothing is taken off: no figure here is made smaller by a guess.
    """
    pool = rank.kv_pool_tokens
    if not pool:
        return 0
    limit = pool - INPUT_MARGIN if rank.told_input_limit is None else min(rank.told_input_limit, pool - INPUT_MARGIN)
    keeps_back = rank.keeps_back is True
    measured = Measured(
        where=PoolId(str(rank.role), rank.source, rank.rank or 0),
        type=RoleType.DECODE if keeps_back else RoleType.PREFILL,
        kv_pool_tokens=pool,
        page_size=rank.page_size or 1,
        max_input_tokens=max(0, limit),
        reserved_decode_tokens=(rank.reserved_decode_tokens or 0) if keeps_back else 0,
    )
    return max(0, context_that_fits(measured, Wanted(requested_tokens=pool, headroom_percent=0)))
