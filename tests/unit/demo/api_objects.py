"""A pool and its pods, as the API has them at moments of a pool's coming up."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import yaml

from e2e.demo.scene import EXAMPLE

ENGINES = {"prefill": 1024, "decode": 4096}
CONDITIONS = {
    "Ready": ("Serving", "The pool serves, as it was asked for."),
    "EngineAllowed": ("VersionAllowed", "SGLang in pod a is 0.5.23, and the floor is 0.5.23."),
    "RolesReady": ("EnginesStarted", "All 2 engines have started."),
    "ContextFits": ("ContextCapped", "1,003 of the 4,096 tokens asked for are on offer."),
    "IntegrityEnforced": ("ChecksumEnforced", "All running engines report it as on: 2 of 2."),
    "IsolationVerified": ("IsolationProven", "All 2 engines and the front are proven."),
    "TrafficAdmitted": ("Admitted", "Users' requests are let in, to 1 prefill and 1 decode engines."),
}
SINCE = "2026-11-30T20:00:10Z"


def condition(kind: str, status: str, reason: str, message: str = "", generation: int = 1) -> dict[str, Any]:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": SINCE,
    }


def pool(*holding: str, others: tuple[dict[str, Any], ...] = (), sizes: bool = True) -> dict[str, Any]:
    """The example's pool with these conditions True."""
    made: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    made["metadata"] |= {"generation": 1, "namespace": "demo"}
    outdated = condition("PluginOutdated", "False", "PluginCurrent", "kvfence-engine 0.1.0 is injected.")
    holds = [condition(kind, "True", *CONDITIONS[kind]) for kind in holding]
    roles = [
        {"name": name, "engineVersion": "0.5.23"} | ({"kvPoolTokens": tokens} if sizes else {})
        for name, tokens in reversed(ENGINES.items())
    ]
    context = {"requestedTokens": 4096, "advertisedTokens": 1003, "limitingRole": "prefill"}
    made["status"] = {"conditions": [*holds, *others, outdated], "roles": roles}
    if sizes:
        made["status"]["contextLength"] = context
    return made


def pod(role: str, *, running: bool = True, ready: bool = False, **status: Any) -> dict[str, Any]:
    state = {"running": {}} if running else {"waiting": {"reason": "PodInitializing"}}
    return {
        "metadata": {
            "name": f"first-pool-{role}",
            "labels": {"kvfence.io/component": "engine", "kvfence.io/role": role},
        },
        "status": {
            "phase": "Running" if running else "Pending",
            "conditions": [{"type": "Ready", "status": str(ready)}],
            "containerStatuses": [{"name": "engine", "state": state, "restartCount": 0}],
        }
        | deepcopy(status),
    }


def pods(*, running: bool = True, ready: bool = False) -> list[dict[str, Any]]:
    return [pod(role, running=running, ready=ready) for role in ENGINES]
