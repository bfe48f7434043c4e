"""The advisories that apply to what was seen, and those of which it cannot be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.domain.advisories import Applies, Subject, judge, with_components
from kvfence.domain.advisories.judging import release
from kvfence.domain.diagnosis.hits import Hit, named

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvfence.domain.advisories import Advisory
    from kvfence.domain.diagnosis.scene import Scene, Server
    from kvfence.domain.diagnosis.seen import RouterSeen

SHOWN = 8
"""Ids that a sentence names; of more it says how many."""


def subjects(scene: Scene) -> tuple[tuple[str, Subject], ...]:
    """Return what was seen as advisories look at it, each with its place. What nobody made is nothing they know."""
    found = [(one.source, _of_engine(one)) for one in scene.servers if one.product is not None]
    found += [(one.source, _of_router(one)) for one in scene.routers if one.product is not None]
    return tuple((source, part) for source, subject in found for part in with_components(subject))


def known_faults(scene: Scene, advisories: Sequence[Advisory]) -> Iterator[Hit]:
    """Yield one hit for each advisory that applies, at each place."""
    for source, subject in subjects(scene):
        for advisory in advisories:
            if judge(advisory, subject).applies is Applies.YES:
                what, cure = _sentence(advisory.summary), _sentence(advisory.what_to_do)
                yield Hit(advisory.id, advisory.severity, source, what, cure)


def undecided(scene: Scene, advisories: Sequence[Advisory]) -> Iterator[str]:
    """Yield in few sentences of which advisories it cannot be told whether they apply, with all places of each.

    Where the version is not told that is nearly all of them, and their number says enough.
    """
    by_version: dict[int, list[str]] = {}
    by_more: dict[tuple[str, ...], list[str]] = {}
    for source, subject in subjects(scene):
        open_ = [one.id for one in advisories if judge(one, subject).applies is Applies.UNKNOWN]
        if open_ and release(subject.version) is None:
            by_version.setdefault(len(open_), []).append(f"{source} ({subject.package})")
        elif open_:
            by_more.setdefault(tuple(open_), []).append(source)
    for number, sources in by_version.items():
        faults = "1 known fault applies" if number == 1 else f"{number} known faults apply"
        yield f"{named(sources)}: whether {faults} is not known, since the version is not."
    for names, sources in by_more.items():
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        verb = "applies" if len(names) == 1 else "apply"
        yield (
            f"{named(sources)}: whether {', '.join(names[:SHOWN])}{more} {verb} depends on what was not told; "
            f"kvfence explain {names[0]} says on what."
        )


def _of_engine(server: Server) -> Subject:
    """A key's value is in nothing that was kept; that one is set is known all the same."""
    names = {name for rank in server.ranks for name in rank.keys_shown}
    settings = {**server.settings, **dict.fromkeys(names, True)}
    assert server.product is not None
    return Subject(server.product.value, server.first.version, server.role, settings, server.environment)


def _of_router(router: RouterSeen) -> Subject:
    told = {"control_plane_open": router.control_plane_open, "server_info_open": router.server_info_open}
    assert router.product is not None
    settings = {name: value for name, value in told.items() if value is not None}
    return Subject(router.product.value, router.version, settings=settings)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
