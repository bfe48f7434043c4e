"""Whether an advisory applies to what runs: by the version that the running server says, and by its condition.

A version that cannot be placed among releases is unknown, never "new enough": nobody can say which fixes are in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name
from packaging.version import Version

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.advisories.conditions import BACKEND_SETTING, Answer, Applies, Told

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.domain.advisories.advisory import Advisory

NOTHING: Mapping[str, Any] = MappingProxyType({})

VERSION_LENGTH = 128
"""Characters; a longer text is no version."""
SHOWN = 64
"""Characters of an unreadable version that a sentence quotes."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What runs, as far as it was told."""

    package: str
    """Its name on PyPI: `sglang`, `smg`, `mooncake-transfer-engine`."""
    version: str | None = None
    """As the running server says it; none when it does not."""
    role: RoleType | None = None
    settings: Mapping[str, Any] = field(default_factory=lambda: NOTHING, repr=False)
    """By SGLang's names (`enable_hierarchical_cache`); of a router `control_plane_open` and `server_info_open`, as
    seen. What is missing was not told; null was told to be unset."""
    environment: Mapping[str, str] = field(default_factory=lambda: NOTHING, repr=False)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether it applies, and why in a sentence."""

    applies: Applies
    why: str


def judge(advisory: Advisory, subject: Subject) -> Judgement:
    """Return whether an advisory applies to what runs. Never raises."""
    if advisory.withdrawn is not None:
        return Judgement(Applies.NO, f"It was withdrawn on {advisory.withdrawn.date()}.")
    by_version = _by_version(advisory, subject)
    if by_version.applies is Applies.NO or advisory.condition is None:
        return Judgement(by_version.applies, _sentence(by_version.why))
    by_condition = advisory.condition.answer(Told(subject.role, subject.settings, subject.environment))
    if by_condition.applies is Applies.NO:
        return Judgement(Applies.NO, _sentence(by_condition.why))
    unknown = [one.why for one in (by_version, by_condition) if one.applies is Applies.UNKNOWN]
    if unknown:
        return Judgement(Applies.UNKNOWN, _sentence(", and ".join(unknown)))
    return Judgement(Applies.YES, _sentence(f"{by_version.why}, and {by_condition.why}"))


def release(text: str | None) -> Version | None:
    """Return a version that can be placed among releases.

    None for what is not told, cannot be read, is no final release (a development version, a release candidate, a local
    build), or has an epoch, which none of these packages has and which would be newer than everything.
    """
    if text is None or len(text) > VERSION_LENGTH:
        return None
    try:
        version = Version(text)
    except ValueError:  # InvalidVersion, or a number of too many digits
        return None
    return None if version.is_prerelease or version.local is not None or version.epoch else version


def with_components(subject: Subject) -> tuple[Subject, ...]:
    """Return what runs, and the packages within an SGLang engine whose versions no server tells."""
    if canonicalize_name(subject.package) != "sglang":
        return (subject,)
    backend = subject.settings.get(BACKEND_SETTING)
    if not isinstance(backend, str) or subject.role is RoleType.UNIFIED:  # the setting has a default
        backend = ""
    packages = [_BACKEND_PACKAGES.get(backend.casefold(), "")]
    packages += ["lmcache"] if subject.settings.get("enable_lmcache") is True else []
    return (subject, *(replace(subject, package=package, version=None) for package in packages if package))


_BACKEND_PACKAGES = {"mooncake": "mooncake-transfer-engine", "nixl": "nixl"}


def _by_version(advisory: Advisory, subject: Subject) -> Answer:
    package = canonicalize_name(subject.package)
    affected = [one for one in advisory.affected if one.package == package]
    if not affected:
        return Answer(Applies.NO, f"{package} is not among the packages that it is about")
    version = release(subject.version)
    if version is None:
        return Answer(Applies.UNKNOWN, _unplaced(package, subject.version))
    ranges = "; ".join(map(str, affected))
    if any(one.holds(version) for one in affected):
        return Answer(Applies.YES, f"{package} {version} is affected ({ranges})")
    return Answer(Applies.NO, f"{package} {version} is not affected ({ranges})")


def _unplaced(package: str, text: str | None) -> str:
    if text is None:
        return f"the version of {package} is not told"
    printable = "".join(character if character.isprintable() else " " for character in text[:SHOWN])
    return f'"{printable}" is no release of {package}, so that nobody can say which fixes are in it'


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if not text.startswith(_NAMES) else f"{text}."


_NAMES = ("sglang", "vllm", "smg", "mooncake", "nixl", "lmcache")
"""Names of programs keep their small letter."""
