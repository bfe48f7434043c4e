"""What the operator is told through its environment; the chart sets it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from packaging.version import InvalidVersion, Version
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

import kvfence
from kvfence.catalogue.signing import public_key
from kvfence.domain.advisories import CutLimit
from kvfence.domain.severity import Severity
from kvfence.domain.versions import DEFAULT_FLOORS, Floors
from kvfence.render.settings import Installation

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "KVFENCE_"


class SettingsError(ValueError):
    """A variable is missing or wrong; the message names it and says what is expected."""


def _split(value: object) -> object:
    """Read `a,b` as two."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _pairs(value: object) -> object:
    """Read `a=b,c=d` as a map."""
    if not isinstance(value, str):
        return value
    pairs = [part.partition("=") for part in value.split(",") if part.strip()]
    if any(not separator or not key.strip() for key, separator, _ in pairs):
        raise ValueError("write key=value,key=value")
    return {key.strip(): said.strip() for key, _, said in pairs}


class _Variables(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    namespace: Annotated[str, Field(min_length=1)]
    pod_name: Annotated[str, Field(min_length=1)]
    engine_image_repository: Annotated[str, Field(min_length=1)]
    plugin_version: Annotated[str, Field(min_length=1)] = kvfence.__version__
    router_image: Annotated[str, Field(min_length=1)]
    front_image: Annotated[str, Field(min_length=1)]
    operator_labels: Annotated[dict[str, str], BeforeValidator(_pairs), Field(min_length=1)]
    watch_namespaces: Annotated[tuple[str, ...], BeforeValidator(_split)] = ()
    log_format: Literal["json", "text"] = "json"
    concurrent_reconciles: Annotated[int, Field(ge=1, le=64)] = 8
    resync_seconds: Annotated[float, Field(ge=1, le=86_400)] = 300.0
    minimum_version: str = ""
    advisories: str = ""
    advisory_keys: Annotated[tuple[str, ...], BeforeValidator(_split), Field(max_length=2)] = ()
    advisory_cut_severity: Literal["critical", "high"] | None = None
    advisory_cut_limit: Annotated[int, Field(ge=1, le=1000)] = 1


@dataclass(frozen=True)
class AdvisorySettings:
    """What is added to the advisories in the package, and what they may do to pools that serve."""

    file: Path | None = None
    """A signed catalogue, its signature beside it under the same name with `.sig`; `None` for the package's alone."""
    public_keys: tuple[bytes, ...] = ()
    """Who may have signed it: the text of each Ed25519 public key."""
    cuts: CutLimit | None = None
    """From which severity a pool that serves is cut, and how many at the same time; `None`: never."""


@dataclass(frozen=True)
class Settings:
    """Everything the operator needs to know before it looks at a pool."""

    installation: Installation
    namespace: str
    """Its own: of the Lease and of the signing key."""
    pod_name: str
    """Under which it holds the Lease."""
    watch_namespaces: tuple[str, ...]
    """Where pools are looked after; empty: everywhere."""
    log_format: str
    concurrent_reconciles: int
    resync_seconds: float
    floors: Floors
    advisories: AdvisorySettings = AdvisorySettings()


def settings_from(environment: Mapping[str, str]) -> Settings:
    """Read the settings; an empty variable is as one that is not set.

    Raises:
        SettingsError: see there.
    """
    given: dict[str, Any] = {
        name.removeprefix(PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(PREFIX) and value != ""
    }
    try:
        read = _Variables.model_validate(given)
    except ValidationError as error:
        raise SettingsError(_words(error)) from error
    return Settings(
        installation=Installation(
            engine_image_repository=read.engine_image_repository,
            plugin_version=read.plugin_version,
            router_image=read.router_image,
            front_image=read.front_image,
            operator_namespace=read.namespace,
            operator_labels=read.operator_labels,
        ),
        namespace=read.namespace,
        pod_name=read.pod_name,
        watch_namespaces=read.watch_namespaces,
        log_format=read.log_format,
        concurrent_reconciles=read.concurrent_reconciles,
        resync_seconds=read.resync_seconds,
        floors=_floors(read.minimum_version),
        advisories=AdvisorySettings(
            file=Path(read.advisories) if read.advisories else None,
            public_keys=tuple(_public_key(key) for key in read.advisory_keys),
            cuts=CutLimit(Severity(read.advisory_cut_severity), read.advisory_cut_limit)
            if read.advisory_cut_severity
            else None,
        ),
    )


def _public_key(text: str) -> bytes:
    try:
        public_key(text.encode())
    except ValueError as error:
        raise SettingsError(f"{PREFIX}ADVISORY_KEYS: {error}") from error
    return text.encode()


def _floors(minimum: str) -> Floors:
    """The cluster's floor can be raised, not lowered; a pool that only observes the checksum is held to it too."""
    if not minimum:
        return DEFAULT_FLOORS
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)*(\.post[0-9]+)?", minimum):
        raise SettingsError(f"{PREFIX}MINIMUM_VERSION: write a release such as 0.5.23, not {minimum[:64]!r}")
    try:
        version = Version(minimum)
        return Floors(enforce=version, observe=max(version, DEFAULT_FLOORS.observe))
    except (InvalidVersion, ValueError) as error:
        raise SettingsError(f"{PREFIX}MINIMUM_VERSION: {error}") from error


def _words(error: ValidationError) -> str:
    said = [f"{PREFIX}{'.'.join(map(str, one['loc'])).upper()}: {one['msg']}" for one in error.errors()]
    return "; ".join(said)
