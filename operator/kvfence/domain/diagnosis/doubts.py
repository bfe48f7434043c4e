"""What keeps the doctor from saying that nothing is wrong, as data: with one, and no finding, its exit code is 2."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from kvfence.domain.advisories.judging import release

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvfence.domain.diagnosis.scene import Scene, Server
    from kvfence.domain.diagnosis.seen import EngineSeen, RouterSeen


class Reason(StrEnum):
    """Why it cannot be told. A sentence about each place is in what is missing."""

    NO_ENGINE = "NoEngine"
    """No source tells of an engine."""
    CONTEXT_FITS_UNTOLD = "ContextFitsUntold"
    """Whether its pool holds the advertised context is not told; a source that tells nothing is among these."""
    RANKS_UNTOLD = "RanksUntold"
    """It has ranks of which nothing is told."""
    VERSION_UNPLACED = "VersionUnplaced"
    """It tells a version that is no release, so that nobody can say which faults are in it."""
    VERSION_UNTOLD = "VersionUntold"
    """A server that is a half of a pair answered, and did not tell its version."""
    HALF_UNSEEN = "HalfUnseen"
    """The other half of its pair was not seen."""
    CONTROL_PLANE_UNTOLD = "ControlPlaneUntold"
    """Whether anybody can enrol a worker at this router is not told."""
    SERVER_INFO_UNTOLD = "ServerInfoUntold"
    """Whether this router hands an engine's settings to anybody is not told."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """One reason, and where it is."""

    reason: Reason
    where: str
    """A source; empty where it is about all together."""


def doubts(rows: Sequence[EngineSeen], scene: Scene) -> tuple[Doubt, ...]:
    """Return what keeps it from being known that all is well.

    A version that is not told is none for a log, which never tells one, and for a server alone: what is wrong with an
    engine alone of some release is in what is missing, and a code that is never 0 says nothing.

    Args:
        rows: of the report, those of sources that tell nothing among them.
        scene: the same, put together.
    """
    found = [] if rows else [Doubt(Reason.NO_ENGINE, "")]
    for row in rows:
        if row.context_fits is None:
            found.append(Doubt(Reason.CONTEXT_FITS_UNTOLD, row.source))
        if row.ranks_untold:
            found.append(Doubt(Reason.RANKS_UNTOLD, row.source))
    for server in scene.servers:
        found += _of_server(server)
    for router in scene.routers:
        found += _of_router(router)
    for group in scene.half_pairs():
        found += [Doubt(Reason.HALF_UNSEEN, server.source) for server in group]
    return tuple(dict.fromkeys(found))


def _of_server(server: Server) -> Iterator[Doubt]:
    if _unplaced(server.first.version):
        yield Doubt(Reason.VERSION_UNPLACED, server.source)
    in_pair = server.in_pair or bool(server.named_in)
    if in_pair and server.first.version is None and any(rank.answered for rank in server.ranks):
        yield Doubt(Reason.VERSION_UNTOLD, server.source)


def _of_router(router: RouterSeen) -> Iterator[Doubt]:
    if _unplaced(router.version):
        yield Doubt(Reason.VERSION_UNPLACED, router.source)
    if router.control_plane_open is None:
        yield Doubt(Reason.CONTROL_PLANE_UNTOLD, router.source)
    if router.server_info_open is None:
        yield Doubt(Reason.SERVER_INFO_UNTOLD, router.source)


def _unplaced(version: str | None) -> bool:
    return version is not None and release(version) is None
