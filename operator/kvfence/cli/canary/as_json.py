"""The report for programs. Its shape is API; docs/canary.md has it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kvfence.cli.canary.statement import curve

if TYPE_CHECKING:
    from kvfence.cli.canary.report import Judged, Report
    from kvfence.verify.canary.detection import Probing
    from kvfence.verify.canary.session import Known, Target


def as_json(report: Report) -> str:
    """Return the report as JSON, with a line's end."""
    said = {
        "target": {"name": report.name, **_target(report.target)},
        "began": report.began.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "interrupted": report.interrupted,
        "checks": [_check(judged) for judged in report.checks],
        "leftOut": [{"name": one.check.value, "reason": one.why} for one in report.left_out],
        "notes": list(report.notes),
        "requests": report.requests,
        "tokens": report.tokens,
        "seconds": round(report.seconds, 3),
        "exitCode": int(report.exit_code),
    }
    return json.dumps(said, indent=2) + "\n"


def _check(judged: Judged) -> dict[str, Any]:
    return {
        "name": judged.check.value,
        "verdict": judged.verdict.value,
        "reason": judged.reason,
        "evidence": list(judged.evidence),
        "requests": judged.requests,
        "tokens": judged.tokens,
        "seconds": round(judged.seconds, 3),
        "detectionProbability": None if judged.probing is None else _detection(judged.probing),
    }


def _detection(probing: Probing) -> dict[str, Any]:
    return {
        "rounds": probing.rounds,
        "atOnce": probing.at_once,
        "sensitivity": probing.sensitivity,
        "curve": curve(probing),
    }


def _target(target: Target | None) -> dict[str, Any]:
    if target is None:
        return {"kind": None, "model": None, "servers": []}
    kind = "pair" if target.pair is not None else "router" if target.is_router else "server"
    reference = () if target.reference is None else (target.reference,)
    servers = [*target.legs, *target.engines, *reference]
    return {"kind": kind, "model": target.model, "servers": [_server(server) for server in servers]}


def _server(server: Known) -> dict[str, Any]:
    return {
        "name": server.name,
        "url": server.url,
        "version": server.version,
        "kvPoolTokens": server.kv_pool_tokens,
        "contextLength": server.context_length,
        "maxInputTokens": server.max_input_tokens,
        "pageSize": server.page_size,
    }
