"""The command line and the environment of an engine.

A user's flags come first and ours behind them: of a flag that is there twice, SGLang takes the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvfence.api.v1alpha1.pool import RoleType, TransferBackend
from kvfence.domain.revisions import start_tokens

if TYPE_CHECKING:
    from kvfence.api.v1alpha1.engine import ModelSource
    from kvfence.api.v1alpha1.pool import Disaggregation, Integrity, Parallelism, PoolSpec, Role
    from kvfence.render.identity import Manifest, PoolIdentity

HTTP_PORT = 30000
"""Of SGLang; also in `TAKEN_PORTS` of the API, so that no pool puts its bootstrap server there."""
DOOR_PORT = 8901
"""Of kvfence-engine's launcher: status, probes and admission."""

INJECTED_FOLDER = "/kvfence"
KEYS_FOLDER = "/kvfence-keys"
MODEL_FOLDER = "/kvfence-model"
TERMINATION_LOG = "/dev/termination-log"
"""Where the kubelet reads a container's last words, unless a pod says otherwise."""

COMMAND = ("python3", f"{INJECTED_FOLDER}/kvfence_engine")

RELEASE_SECONDS = 30
"""How long decode then waits to release the pages of a transfer that failed (SGLang's deferred KV release)."""
SHUTDOWN_SECONDS = 30
"""SGLang looks every 5 s whether all requests are done, then gives its schedulers 15 s to end; and some to spare."""
TIDY_SECONDS = 30
"""From the end of the launcher's patience until the kubelet kills it: to end processes and say why."""

_MODES = {RoleType.PREFILL: "prefill", RoleType.DECODE: "decode"}
_BACKENDS = {TransferBackend.MOONCAKE: "mooncake"}


@dataclass(frozen=True, slots=True)
class Location:
    """Where a model's files are, for SGLang and for the pod."""

    path: str
    """`--model-path`."""
    claim: str | None = None
    """The PersistentVolumeClaim that is mounted at `MODEL_FOLDER`."""


def location(model: ModelSource) -> Location:
    """Return where the model is.

    Raises:
        ValueError: of a kind that is not known here.
    """
    scheme, _, rest = model.uri.partition("://")
    if scheme == "file":
        return Location(rest)
    if scheme == "hf":
        return Location(rest)
    if scheme == "pvc":
        claim, slash, folder = rest.partition("/")  # the whole claim is mounted: models in a cache are links within it
        return Location(MODEL_FOLDER + slash + folder, claim)
    raise ValueError("model.uri: begin with hf://, pvc:// or file://")


def drain_seconds(disaggregation: Disaggregation) -> int:
    """Return how long, in seconds, an engine may take to finish what is in flight: a transfer waits that long."""
    return disaggregation.transfer_timeout_seconds + RELEASE_SECONDS + SHUTDOWN_SECONDS


def grace_seconds(disaggregation: Disaggregation) -> int:
    """Return the pod's grace period in seconds."""
    return drain_seconds(disaggregation) + TIDY_SECONDS


def arguments(pool: PoolIdentity, spec: PoolSpec, role: Role, *, defended: bool = True) -> list[str]:
    """Return the arguments of the launcher, and behind -- those of SGLang.

    Args:
        pool: whose it is.
        spec: of the pool.
        role: one of its roles.
        defended: whether the launcher knows the flags of the defences of pages.

    Raises:
        ValueError: the pool has something that its CRD refuses.
    """
    return [
        *("--pool", pool.uid, "--pod", "$(KVFENCE_POD_UID)", "--keys", KEYS_FOLDER),
        *("--termination-log", TERMINATION_LOG, "--drain-seconds", str(drain_seconds(spec.disaggregation))),
        *(_defences(spec.integrity) if defended else ()),
        "--",
        *spec.engine.sglang.args,
        *role.args,
        *own_flags(spec, role),
    ]


def _defences(integrity: Integrity) -> list[str]:
    modes = {
        "--page-tagging": integrity.page_tagging,
        "--page-scrubbing": integrity.page_scrubbing,
        "--coverage": integrity.coverage,
    }
    return [word for flag, mode in modes.items() for word in (flag, mode.value)]


def own_flags(spec: PoolSpec, role: Role) -> list[str]:
    """Return the flags of SGLang that kvfence sets. The API refuses each of them in a user's args."""
    model, disaggregation = spec.model, spec.disaggregation
    if role.type not in _MODES:
        raise ValueError(f"roles: type {role.type} is not supported yet")
    if disaggregation.transfer_backend not in _BACKENDS:
        raise ValueError(f"disaggregation.transferBackend: {disaggregation.transfer_backend} is not supported yet")
    return [
        *("--model-path", location(model).path, *(("--revision", model.commit) if model.commit else ())),
        *("--served-model-name", model.served_name, "--context-length", str(start_tokens(spec))),
        *("--host", "0.0.0.0", "--port", str(HTTP_PORT)),  # noqa: S104 - who reaches a pod is for network policies
        *_parallelism(role.parallelism),
        *("--disaggregation-mode", _MODES[role.type]),
        *("--disaggregation-transfer-backend", _BACKENDS[disaggregation.transfer_backend]),
        *("--disaggregation-bootstrap-port", str(disaggregation.bootstrap_port)),
        # Whether it is enforced or only observed decides what is demanded of an engine, not how it is started.
        "--disaggregation-enable-kv-checksum",
    ]


def _parallelism(parallelism: Parallelism) -> list[str]:
    wanted = {"--tp-size": parallelism.tensor, "--pp-size": parallelism.pipeline, "--dp-size": parallelism.data}
    return [word for flag, size in wanted.items() if size > 1 for word in (flag, str(size))]


def environment(spec: PoolSpec) -> list[Manifest]:
    """Return the variables of an engine: ours, which the API refuses in a user's env, and then the user's.

    The order counts: the kubelet fills $(NAME) in only when NAME stands further up.
    """
    token, seconds = spec.model.token_secret_ref, str(spec.disaggregation.transfer_timeout_seconds)
    own = [
        _from_pod("KVFENCE_POD_UID", "metadata.uid"),
        _from_pod("KVFENCE_POD_IP", "status.podIP"),
        {"name": "SGLANG_HOST_IP", "value": "$(KVFENCE_POD_IP)"},
        {"name": "SGLANG_DISAGGREGATION_WAITING_TIMEOUT", "value": seconds},
        {"name": "SGLANG_DISAGGREGATION_BOOTSTRAP_TIMEOUT", "value": seconds},
    ]
    if token is not None:
        reference = {"name": token.name, "key": token.key}
        own.append({"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": reference}})
    return own + [{"name": variable.name, "value": variable.value} for variable in spec.engine.sglang.env]


def _from_pod(name: str, field: str) -> Manifest:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}}
