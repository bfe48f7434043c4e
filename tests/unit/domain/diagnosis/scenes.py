"""Engines and routers as tests want them, sound unless something is changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.domain.advisories import Advisory
from kvfence.domain.diagnosis import diagnose
from kvfence.domain.diagnosis.report import Finding, Report
from kvfence.domain.diagnosis.seen import EngineSeen, Product, RouterSeen, Seen
from kvfence.domain.severity import Severity

SOUND = EngineSeen(
    source="http://engine",
    product=Product.SGLANG,
    version="0.5.23",
    started=True,
    role=RoleType.UNIFIED,
    kv_pool_tokens=200_000,
    context_length=100_000,
    told_input_limit=99_994,
    page_size=64,
    reserved_decode_tokens=512,
    settings={
        "served_model_name": "m",
        "model_path": "/models/m",
        "context_length": 100_000,
        "page_size": 64,
        "kv_cache_dtype": "auto",
        "tp_size": 8,
        "allow_auto_truncate": False,
        "disaggregation_transfer_backend": "mooncake",
        "disaggregation_enable_kv_checksum": True,
        "api_key": None,
    },
    environment={"SGLANG_HOST_IP": "10.0.0.1"},
)

ADVISORY = Advisory(
    id="KVF-2026-001",
    aliases=(),
    summary="Something is wrong",
    details="",
    severity=Severity.HIGH,
    affected=(),
    condition=None,
    what_to_do="Upgrade.",
    references=(),
    modified=datetime(2026, 11, 20, tzinfo=UTC),
)
"""It applies to nothing, and is there so that advisories were looked at."""


def engine(**changes: Any) -> EngineSeen:
    """Return a sound engine with changes: to its fields, and by `settings` and `environment` to single entries."""
    settings = {**SOUND.settings, **changes.pop("settings", {})}
    environment = {**SOUND.environment, **changes.pop("environment", {})}
    return replace(SOUND, settings=settings, environment=environment, **changes)


def prefill(**changes: Any) -> EngineSeen:
    """Return the prefill half of a sound pair."""
    return engine(**{"source": "http://prefill", "role": RoleType.PREFILL, **changes})


def decode(**changes: Any) -> EngineSeen:
    """Return the decode half of a sound pair."""
    return engine(**{"source": "http://decode", "role": RoleType.DECODE, **changes})


def router(**changes: Any) -> RouterSeen:
    """Return a router that is closed."""
    closed = RouterSeen(
        "http://router", product=Product.SMG, version="1.13.0", control_plane_open=False, server_info_open=False
    )
    return replace(closed, **changes)


def report(*seen: Seen, advisories: tuple[Advisory, ...] = (ADVISORY,)) -> Report:
    """Diagnose."""
    return diagnose(seen, advisories)


def found(*seen: Seen) -> dict[str, Finding]:
    """Return the findings by their ids."""
    return {one.id: one for one in report(*seen).findings}
