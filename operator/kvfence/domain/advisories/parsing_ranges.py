"""Reads `affected` of an OSV document: packages of PyPI with releases in the order of PEP 440."""

from __future__ import annotations

from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import Version

from kvfence.domain.advisories import reading
from kvfence.domain.advisories.advisory import Affected, Span

MOST_PACKAGES = 16
MOST_RANGES = 32
MOST_EVENTS = 64
MOST_VERSIONS = 2000
NAME_LENGTH = 100
VERSION_LENGTH = 64

BEGINNING = "0"
"""OSV's word for "all from the first release on"."""
ECOSYSTEM = "PyPI"


def affected(value: object) -> tuple[Affected, ...]:
    """Return the packages with their releases.

    Raises:
        ValueError: something in it cannot be judged.
    """
    return tuple(_package(item) for item in reading.of_list(value, "affected", MOST_PACKAGES))


def _package(value: object) -> Affected:
    informal = {"ecosystem_specific", "database_specific"}
    entry = reading.fields(value, "affected", frozenset({"package", "ranges", "versions", *informal}))
    package = reading.fields(entry.get("package"), "package", frozenset({"ecosystem", "name", "purl"}))
    if package.get("ecosystem") != ECOSYSTEM:
        raise ValueError(f"the ecosystem of a package is not {ECOSYSTEM}")
    name = reading.line(package.get("name"), "the name of a package", NAME_LENGTH)
    ranges = reading.of_list(entry.get("ranges", []), "ranges", MOST_RANGES, least=0)
    versions = reading.of_list(entry.get("versions", []), "versions", MOST_VERSIONS, least=0)
    if not ranges and not versions:
        raise ValueError(f"package {reading.shown(name)} has neither ranges nor versions")
    spans = tuple(span for one in ranges for span in _spans(one))
    return Affected(canonicalize_name(name), spans, tuple(_version(one) for one in versions))


def _spans(value: object) -> tuple[Span, ...]:
    entry = reading.fields(value, "a range", frozenset({"type", "events", "database_specific"}))
    if entry.get("type") != "ECOSYSTEM":
        raise ValueError("the type of a range is not ECOSYSTEM, and commits or other orders cannot be judged")
    events = [_event(one) for one in reading.of_list(entry.get("events"), "events", MOST_EVENTS)]
    if {"fixed", "last_affected"} <= {kind for kind, _ in events}:
        raise ValueError("a range has both fixed and last_affected")
    places = [version for _, version in events]
    if len(set(places)) != len(places):
        raise ValueError("a range has two events at the same version")
    ordered = sorted(events, key=lambda event: (event[1] is not None, event[1] or Version("0")))
    starts, ends = ordered[::2], ordered[1::2]
    if any(kind != "introduced" for kind, _ in starts) or any(kind == "introduced" for kind, _ in ends):
        raise ValueError("the events of a range are not introduced and fixed in turn")
    spans = []
    for index, (_, introduced) in enumerate(starts):
        kind, version = ends[index] if index < len(ends) else ("", None)
        fixed, last = (version if kind == name else None for name in ("fixed", "last_affected"))
        spans.append(Span(introduced, fixed, last))
    return tuple(spans)


def _event(value: object) -> tuple[str, Version | None]:
    """Return its kind and version; none stands for the beginning."""
    entry = reading.fields(value, "an event", frozenset({"introduced", "fixed", "last_affected"}))
    if len(entry) != 1:
        raise ValueError("an event has to be one of introduced, fixed and last_affected")
    ((kind, text),) = entry.items()
    return kind, None if kind == "introduced" and text == BEGINNING else _version(text)


def _version(value: Any) -> Version:
    text = reading.line(value, "a version", VERSION_LENGTH)
    try:
        version = Version(text)
    except ValueError:
        version = None
    if version is None or version.epoch or version.local is not None:
        raise ValueError(f"{reading.shown(text)} is no release as PEP 440 writes it")
    return version
