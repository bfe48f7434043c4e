"""The version floor of the gate EngineAllowed: which releases of SGLang may serve, as declared and as they run.

What happened in which release (SGLang's own history): up to 0.5.19 a prompt that did not fit was answered with what
others had written; 0.5.20 answers it with an error, but has no check at the door of prefill and no checksum; 0.5.21 has
both; only from 0.5.23 is the checksum's verdict the same on all ranks of an engine, so that it can be enforced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from packaging.version import InvalidVersion, Version

from kvfence.api.v1alpha1.conditions import ConditionStatus, ConditionType
from kvfence.api.v1alpha1.pool import IntegrityMode
from kvfence.api.v1alpha1.reasons import Reason
from kvfence.domain.findings import Finding

if TYPE_CHECKING:
    from kvfence.api.v1alpha1.pool import PoolSpec

OLDEST = Version("0.5.21")
"""No setting of a pool or of a cluster goes below this."""
CHECKSUM_RELIABLE = Version("0.5.23")

SHOWN = 64
"""Characters of an unreadable version that a message quotes."""


@dataclass(frozen=True, slots=True)
class Floors:
    """The cluster's floor: the oldest release that may serve, by what the pool does with the checksum.

    Raises:
        ValueError: a floor is below what can be kept.
    """

    enforce: Version = CHECKSUM_RELIABLE
    observe: Version = OLDEST

    def __post_init__(self) -> None:
        """A floor can be raised by whoever runs the cluster, and not lowered."""
        if self.enforce < CHECKSUM_RELIABLE:
            raise ValueError(
                f"the floor with the checksum enforced is {CHECKSUM_RELIABLE} at least, not {self.enforce}"
            )
        if self.observe < OLDEST:
            raise ValueError(f"the floor is {OLDEST} at least, not {self.observe}")


DEFAULT_FLOORS = Floors()


@dataclass(frozen=True, slots=True)
class Declared:
    """What the pool's spec says about the engine's version."""

    version: str | None
    """`engine.sglang.version`; `None` when the pool does not say."""
    minimum_version: str | None
    """`engine.sglang.minimumVersion`; `None` when the pool adds nothing to the cluster's floor."""
    kv_checksum: IntegrityMode

    @classmethod
    def of(cls, spec: PoolSpec) -> Self:
        """Read it from the spec of an InferencePool."""
        sglang = spec.engine.sglang
        return cls(sglang.version, sglang.minimum_version, spec.integrity.kv_checksum)


def declared_version(declared: Declared, floors: Floors = DEFAULT_FLOORS) -> Finding:
    """Judge what the pool declares, before anything is started. Unknown when it declares nothing."""
    if declared.version is None:
        return _finding(
            ConditionStatus.UNKNOWN,
            Reason.VERSION_NOT_KNOWN,
            "The pool does not declare engine.sglang.version. The engines are started and asked for it; declare it, to "
            "be told before that.",
        )
    return _judged(declared.version, "engine.sglang.version", declared, floors)


def running_version(running: str | None, pod: str, declared: Declared, floors: Floors = DEFAULT_FLOORS) -> Finding:
    """Judge what an engine says of itself.

    Args:
        running: as its server reports it; `None` when it did not say.
        pod: which engine, for the message.
        declared: what the pool says.
        floors: of the cluster.
    """
    if running is None:
        return _finding(
            ConditionStatus.UNKNOWN,
            Reason.VERSION_NOT_KNOWN,
            f"Pod {pod} does not say which release of SGLang it runs, and is not admitted until it does. Look at its "
            "log.",
        )
    finding = _judged(running, f"SGLang in pod {pod}", declared, floors)
    if not finding.holds or declared.version is None or _same(running, declared.version):
        return finding
    return _finding(
        ConditionStatus.FALSE,
        Reason.VERSION_NOT_AS_DECLARED,
        f"Pod {pod} runs SGLang {running}, and engine.sglang.version says {_quoted(declared.version)}. Correct the "
        "version, or use an image with that release.",
    )


def _judged(text: str, what: str, declared: Declared, floors: Floors) -> Finding:
    version = _release(text)
    if version is None:
        return _unreadable(text, what)
    if version.is_prerelease or version.local is not None:
        return _finding(
            ConditionStatus.FALSE,
            Reason.DEVELOPMENT_VERSION,
            f"{what} is {_quoted(text)}, a development version, a release candidate or a local build: nobody can say "
            "which fixes are in it. Use an image with a release of SGLang.",
        )
    minimum = OLDEST if declared.minimum_version is None else _release(declared.minimum_version)
    if minimum is None:
        return _unreadable(declared.minimum_version or "", "engine.sglang.minimumVersion")
    when_observed, when_enforced = max(floors.observe, minimum), max(floors.enforce, minimum)
    floor = when_observed if declared.kv_checksum is IntegrityMode.OBSERVE else when_enforced
    if version >= floor:
        return _finding(ConditionStatus.TRUE, Reason.VERSION_ALLOWED, f"{what} is {version}, and the floor is {floor}.")
    return _below(version, what, floor, when_observed)


def _below(version: Version, what: str, floor: Version, when_observed: Version) -> Finding:
    """Say that it is too old, and whether it would do with the checksum on Observe."""
    if version >= when_observed:
        return _finding(
            ConditionStatus.FALSE,
            Reason.CHECKSUM_NOT_RELIABLE,
            f"{what} is {version}, and {floor} is the oldest release whose KV checksum can be enforced here: before "
            f"{CHECKSUM_RELIABLE} the ranks of an engine may disagree about it. Use an image with {floor} or newer, or "
            "set integrity.kvChecksum to Observe, and the pool will say Secured=False. (The kvfence-engine of today "
            "starts with 0.5.23 alone.)",
        )
    return _finding(
        ConditionStatus.FALSE,
        Reason.VERSION_TOO_OLD,
        f"{what} is {version}, and {floor} is the oldest release that is admitted here. Use an image with {floor} or "
        "newer.",
    )


def _unreadable(text: str, what: str) -> Finding:
    return _finding(
        ConditionStatus.FALSE,
        Reason.VERSION_UNREADABLE,
        f"{what} is {_quoted(text)}, which cannot be compared with a release such as {CHECKSUM_RELIABLE}. Use a "
        "release, and write it so.",
    )


def _release(text: str) -> Version | None:
    """Read a version as PEP 440 has it. An epoch would be newer than everything, and SGLang has none."""
    try:
        version = Version(text)
    except InvalidVersion:
        return None
    return version if version.epoch == 0 else None


def _same(one: str, other: str) -> bool:
    return _release(one) == _release(other)


def _quoted(text: str) -> str:
    printable = "".join(character if character.isprintable() else " " for character in text[:SHOWN])
    return f'"{printable}"'


def _finding(status: ConditionStatus, reason: Reason, message: str) -> Finding:
    return Finding(ConditionType.ENGINE_ALLOWED, status, reason, message)
