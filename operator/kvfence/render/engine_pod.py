"""The pod of an engine: the user's SGLang image with kvfence-engine injected, and the door's probes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvfence.api.v1alpha1.pool import RoleType
from kvfence.api.v1alpha1.template import Container, TemplateMetadata, TemplateSpec
from kvfence.render import engine_command
from kvfence.render.containers import PULL_POLICY, locked_down, pod_security, port
from kvfence.render.identity import Component, keys_name, labels, service_account_name

if TYPE_CHECKING:
    from kvfence.api.v1alpha1.pool import PoolSpec, Role
    from kvfence.render.identity import Manifest, PoolIdentity

CONTAINER = "engine"
INJECTION = "kvfence-inject"
IMAGE_FOLDER = "/kvfence-engine"
"""In the injection image."""

ENGINE_VOLUME, SHM_VOLUME, KEYS_VOLUME, MODEL_VOLUME = "kvfence-engine", "kvfence-shm", "kvfence-keys", "kvfence-model"

STARTED_PATH, READY_PATH = "/started", "/ready"
STARTUP_PERIOD_SECONDS = 2
PROBE_TIMEOUT_SECONDS = 5
"""The launcher answers from memory; on a machine under load it still has to get a turn."""

DEFAULT_CONTAINER_ANNOTATION = "kubectl.kubernetes.io/default-container"


def pod_template(
    pool: PoolIdentity, spec: PoolSpec, role: Role, revision: str, injection_image: str, *, defended: bool = True
) -> Manifest:
    """Return the pod template of a role, complete: it is frozen with its revision and applied as it is.

    Args:
        pool: whose it is.
        spec: of the pool.
        role: one of its roles.
        revision: its hash.
        injection_image: with kvfence-engine.
        defended: whether that kvfence-engine knows the flags of the defences of pages.

    Raises:
        ValueError: the pool has something that its CRD refuses.
    """
    template = role.template
    added = (template.metadata if template else None) or TemplateMetadata()
    pod = (template.spec if template else None) or TemplateSpec()
    own = labels(pool, Component.ENGINE, role=role.name, revision=revision)
    return {
        "metadata": {
            "labels": {**added.labels, **own},
            "annotations": {DEFAULT_CONTAINER_ANNOTATION: CONTAINER, **added.annotations},
        },
        "spec": {
            **_dumped(pod, exclude={"volumes", "containers"}),
            "serviceAccountName": service_account_name(pool),
            "automountServiceAccountToken": False,  # an engine never speaks to the API server
            "enableServiceLinks": False,  # else each Service puts variables into the engine's environment
            "securityContext": pod_security(),
            "terminationGracePeriodSeconds": engine_command.grace_seconds(spec.disaggregation),
            "initContainers": [_injection(injection_image)],
            "containers": [_engine(pool, spec, role, pod.containers, defended=defended)],
            "volumes": [*_volumes(pool, spec), *(_dumped(volume) for volume in pod.volumes)],
        },
    }


def _dumped(part: Any, exclude: set[str] | None = None) -> Manifest:
    """Return a part of the user's template as it was written, without what was left out."""
    dumped: Manifest = part.model_dump(mode="json", exclude_defaults=True, exclude=exclude)
    return dumped


def _injection(image: str) -> Manifest:
    amounts = {"cpu": "100m", "memory": "64Mi"}
    return {
        "name": INJECTION,
        "image": image,
        "imagePullPolicy": PULL_POLICY,
        "command": ["cp", "-R", f"{IMAGE_FOLDER}/.", f"{engine_command.INJECTED_FOLDER}/"],
        "securityContext": locked_down(),
        # Limits as requests: else an engine could not have whole CPUs of its own (QoS class Guaranteed).
        "resources": {"requests": amounts, "limits": amounts},
        "volumeMounts": [{"name": ENGINE_VOLUME, "mountPath": engine_command.INJECTED_FOLDER}],
    }


def _engine(
    pool: PoolIdentity, spec: PoolSpec, role: Role, containers: tuple[Container, ...], *, defended: bool
) -> Manifest:
    of_the_user = _dumped(containers[0], exclude={"name"}) if containers else {}
    ports = [port("http", engine_command.HTTP_PORT), port("door", engine_command.DOOR_PORT)]
    if role.type is RoleType.PREFILL:
        ports.append(port("bootstrap", spec.disaggregation.bootstrap_port))
    return {
        **of_the_user,
        "name": CONTAINER,
        "image": spec.engine.sglang.image,
        "imagePullPolicy": PULL_POLICY,
        "command": list(engine_command.COMMAND),
        "args": engine_command.arguments(pool, spec, role, defended=defended),
        "env": engine_command.environment(spec),
        "ports": ports,
        "startupProbe": _started_probe(role.startup_timeout_seconds),
        # No liveness probe: SGLang's /health is 503 while the door is closed, its watchdog ends an engine that hangs,
        # and the launcher ends with its engine.
        "readinessProbe": _probe(READY_PATH, 1, 1),
        "terminationMessagePath": engine_command.TERMINATION_LOG,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {"allowPrivilegeEscalation": False, **of_the_user.get("securityContext", {})},
        "volumeMounts": [*_mounts(spec), *of_the_user.get("volumeMounts", [])],
    }


def _started_probe(seconds: int) -> Manifest:
    """When it passes, the kubelet reports the container as started: that is the event which measuring waits for."""
    return _probe(STARTED_PATH, STARTUP_PERIOD_SECONDS, -(-seconds // STARTUP_PERIOD_SECONDS))


def _probe(path: str, period_seconds: int, failures: int) -> Manifest:
    return {
        "httpGet": {"path": path, "port": engine_command.DOOR_PORT, "scheme": "HTTP"},
        "periodSeconds": period_seconds,
        "timeoutSeconds": PROBE_TIMEOUT_SECONDS,
        "failureThreshold": failures,
    }


def _volumes(pool: PoolIdentity, spec: PoolSpec) -> list[Manifest]:
    volumes: list[Manifest] = [
        {"name": ENGINE_VOLUME, "emptyDir": {}},
        {"name": SHM_VOLUME, "emptyDir": {"medium": "Memory"}},  # a container's own /dev/shm has 64 MB
        {"name": KEYS_VOLUME, "configMap": {"name": keys_name(pool)}},
    ]
    claim = engine_command.location(spec.model).claim
    if claim is not None:
        volumes.append({"name": MODEL_VOLUME, "persistentVolumeClaim": {"claimName": claim, "readOnly": True}})
    return volumes


def _mounts(spec: PoolSpec) -> list[Manifest]:
    mounts: list[Manifest] = [
        {"name": ENGINE_VOLUME, "mountPath": engine_command.INJECTED_FOLDER, "readOnly": True},
        {"name": SHM_VOLUME, "mountPath": "/dev/shm"},  # noqa: S108 - in the engine's container
        {"name": KEYS_VOLUME, "mountPath": engine_command.KEYS_FOLDER, "readOnly": True},
    ]
    if engine_command.location(spec.model).claim is not None:
        mounts.append({"name": MODEL_VOLUME, "mountPath": engine_command.MODEL_FOLDER, "readOnly": True})
    return mounts
