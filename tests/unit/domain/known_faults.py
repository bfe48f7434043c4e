"""Advisories for the tests of what follows from one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from packaging.version import Version

from kvfence.domain.advisories import Advisory, Affected, Span
from kvfence.domain.advisory_gate import Judged, Watchlist, counting, declared, judged, running
from kvfence.domain.observed import Observed
from kvfence.domain.severity import Severity

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def advisory(name: str = "KVF-2026-9001", **changes: Any) -> Advisory:
    """An advisory of high severity about SGLang up to 0.5.23, under no condition."""
    made = Advisory(
        id=name,
        aliases=("CVE-2026-9001",),
        summary="Pages of others are read.",
        details="For a test.",
        severity=Severity.HIGH,
        affected=(Affected("sglang", (Span(None, last_affected=Version("0.5.23")),)),),
        condition=None,
        what_to_do="Use an image with SGLang 0.5.24 or newer.",
        references=("https://example.com/9001",),
        modified=NOW,
    )
    return replace(made, **changes)


def watched(observed: Observed, *advisories: Advisory, problems: tuple[str, ...] = ()) -> Observed:
    """The same pool in an operator that knows these."""
    watchlist = Watchlist(counting(advisories), problems, NOW)
    engines = tuple(
        replace(one, judged=judged(watchlist, (running(one),)) if one.facts is not None else Judged())
        for one in observed.engines
    )
    of_spec = judged(watchlist, declared(observed.spec))
    return replace(observed, watchlist=watchlist, engines=engines, judged=of_spec)
