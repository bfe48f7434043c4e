"""What one SGLang server of the stage is, and the command and settings that start it. Pure; processes and pods use
the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from e2e.engines.environment import VERSION

SERVED_NAME = "tiny"


class Role(StrEnum):
    """What a server does of a request."""

    UNIFIED = "unified"
    PREFILL = "prefill"
    DECODE = "decode"


@dataclass(frozen=True)
class Ports:
    """Where a server listens; all of them are given, since SGLang's own search races when several start at once."""

    http: int = 30000
    bootstrap: int = 8998
    """Of a prefill server: decode servers ask here where the KV of a request is."""
    rendezvous: int = 8997
    """Of the ranks of one server (`--nccl-port`, also on a CPU)."""


@dataclass(frozen=True)
class Server:
    """One SGLang server with the copy model."""

    name: str
    """Names its log, its pod and its line in a message: lower-case letters, digits and dashes."""
    role: Role = Role.UNIFIED
    version: str = VERSION
    context_length: int = 4096
    """What it advertises, in tokens."""
    pool_tokens: int = 4096
    """What its KV pool really holds. Less than `context_length` is the fault that the project is about."""
    page_size: int = 1
    """Tokens per KV page; more than 1 uses SGLang's paged allocator."""
    extra: tuple[str, ...] = ()
    """Further flags, as on the command line."""
    waiting_seconds: int = 15
    """How long decode waits for KV that does not come, and prefill for a decode that does not ask. SGLang's default:
    300.
    """


@dataclass(frozen=True)
class Reached:
    """A server that answers, and where."""

    server: Server
    url: str
    bootstrap_host: str
    bootstrap_port: int


@dataclass(frozen=True)
class Place:
    """Where a server runs: what is where, as seen by the server."""

    python: str
    model: str
    import_path: tuple[str, ...]
    """`PYTHONPATH`: the shim, then what turns the environment into an older version."""
    listen: str
    address: str
    """How a partner reaches it."""


@dataclass(frozen=True)
class Launch:
    """A command and the settings that belong to it."""

    argv: tuple[str, ...]
    env: dict[str, str]


def launch(server: Server, place: Place, ports: Ports) -> Launch:
    """Return the command line and the environment variables that start `server` at `place`."""
    argv = [
        *(place.python, "-m", "sglang.launch_server"),
        *("--model-path", place.model, "--served-model-name", SERVED_NAME),
        *("--host", place.listen, "--port", str(ports.http), "--nccl-port", str(ports.rendezvous)),
        *("--context-length", str(server.context_length), "--max-total-tokens", str(server.pool_tokens)),
        *("--page-size", str(server.page_size)),
        *_on_a_cpu(),
        *_disaggregation(server.role, ports.bootstrap),
        *server.extra,
    ]
    return Launch(tuple(argv), _settings(server, place))


def _on_a_cpu() -> tuple[str, ...]:
    return (
        *("--device", "cpu", "--attention-backend", "torch_native", "--sampling-backend", "pytorch"),
        *("--cuda-graph-backend-decode", "disabled", "--cuda-graph-backend-prefill", "disabled"),
        "--disable-overlap-schedule",
        "--sleep-on-idle",  # else each idle scheduler takes half a core, and the next one starts twice as slowly
        # No request is made up at the start: the first /health is one, and answers only when it went through all
        # processes.
        "--skip-server-warmup",
    )


def _disaggregation(role: Role, bootstrap_port: int) -> tuple[str, ...]:
    if role is Role.UNIFIED:
        return ()
    flags: tuple[str, ...] = (
        *("--disaggregation-mode", role.value, "--disaggregation-transfer-backend", "mooncake"),
        *("--disaggregation-bootstrap-port", str(bootstrap_port)),
    )
    if role is Role.DECODE:  # the default backs up retracted requests in pinned CUDA memory
        flags += ("--disaggregation-decode-retraction-backup", "cpu_tensor")
    return flags


def _settings(server: Server, place: Place) -> dict[str, str]:
    return {
        "PYTHONPATH": ":".join(place.import_path),
        "SGLANG_USE_CPU_ENGINE": "1",
        "SGLANG_HOST_IP": place.address,
        "SGLANG_DISAGGREGATION_WAITING_TIMEOUT": str(server.waiting_seconds),
        "SGLANG_DISAGGREGATION_BOOTSTRAP_TIMEOUT": str(server.waiting_seconds),
        # KV goes over TCP: no RDMA device here.
        "MC_FORCE_TCP": "1",
        "MOONCAKE_PROTOCOL": "tcp",
        # The model is tiny: more threads only get into the way of the other servers.
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }
