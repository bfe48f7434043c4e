"""Which SGLang, and which of its settings, the door is known to hold in. Pure.

What is named here leaves the door out of some process, or opens a way around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

KNOWN = ("0.5.23",)

_FLAGS = {
    "grpc_port": "requests come in over gRPC, around the door",
    "smg_grpc_mode": "requests come in over gRPC, around the door",
    "grpc_mode": "requests come in over gRPC, around the door",
    "encoder_only": "an encoder has no door",
    "use_ray": "the ranks run where the door's state is not",
    "enable_http2": "the door was not shown to hold in that server",
    "allow_auto_truncate": "a prompt over the cap would be cut instead of refused, by each role at another place",
    "enable_pd_role_switch": "the roles are the pool's",
}
"""Flags that must not be set, and why."""

_SETTINGS = {
    "SGLANG_RUST_SERVER": "that server has no hooks",
    "SGLANG_ENABLE_REQUEST_HEADER_OVERRIDES": "headers would override the fields that the door judged",
    "SGLANG_DIAG_BYPASS_HEALTH_GENERATE": "health would be claimed, not checked",
}
"""Environment variables that must not be set, and why."""

_UNSET = ("", "0", "false", "no", "off", "n", "f")


def refuse_version(version: str) -> str | None:
    """Return why this SGLang does not start; none when it does."""
    if version in KNOWN:
        return None
    return f"SGLang {version} is not one that this kvfence-engine was proven with: {', '.join(KNOWN)}"


def refuse_settings(environment: Mapping[str, str]) -> str | None:
    """Return why an engine with these environment variables does not start; none when it does."""
    for name, why in _SETTINGS.items():
        if environment.get(name, "").lower() not in _UNSET:
            return f"unset {name}: {why}"
    return None


def refuse_flags(flags: Mapping[str, object]) -> str | None:
    """Return why an engine with these flags does not start; none when it does.

    Args:
        flags: SGLang's arguments by their names in Python.
    """
    for name, why in _FLAGS.items():
        value = flags.get(name)
        if value is not None and value is not False:  # not `in`: a port of 0 is set, and equals False
            return f"drop --{name.replace('_', '-')}: {why}"
    if flags.get("tokenizer_worker_num") != 1:
        return "drop --tokenizer-worker-num: further HTTP workers load no plugins and would serve without the door"
    if flags.get("nnodes") != 1:
        return "drop --nnodes: the door's state does not reach another node yet"
    return None


def ranks(flags: Mapping[str, object]) -> int:
    """Return how many scheduler processes an engine with these flags has."""
    sizes = [flags.get(name) for name in ("tp_size", "pp_size", "dp_size")]
    tensor, pipeline, data = (size if isinstance(size, int) else 0 for size in sizes)
    # With attention in data parallel the replicas share the ranks of the tensor parallel group.
    return tensor * pipeline * (1 if flags.get("enable_dp_attention") else data)
