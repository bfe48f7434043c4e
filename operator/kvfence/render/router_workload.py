"""The router of a revision: smg on loopback, and nginx in front of it in the same pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.render.containers import PULL_POLICY, locked_down, pod_security, port
from kvfence.render.front import (
    BODY_MIB,
    CONF_FILE,
    CONFIG_FOLDER,
    OPERATOR_PORT,
    REQUEST_SECONDS,
    ROUTER_PORT,
    TEMPORARY_FOLDER,
    USERS_PORT,
    WORKERS_FILE,
    conf_digest,
)
from kvfence.render.identity import (
    Component,
    labels,
    metadata,
    router_config_name,
    router_name,
    selector,
    service_account_name,
)

if TYPE_CHECKING:
    from kvfence.api.v1alpha1.pool import PoolSpec
    from kvfence.render.identity import Manifest, PoolIdentity
    from kvfence.render.settings import Installation

FRONT, ROUTER = "front", "router"
CONF_ANNOTATION = "kvfence.io/front-config"
METRICS_PORT = 29000
"""Of smg, on loopback."""

LEAVING_SECONDS = 5
"""How long both containers go on as before when the pod is to end: until then others may still send to it."""
DRAIN_SECONDS = 20
"""How long smg then waits for requests in flight."""

# smg 1.13. Retries would show a prompt to one engine after another; a circuit breaker lets two bad prompts close a pool
# (kvfence judges engines itself); an engine that is removed for a failed check would be out for half a minute.
SMG_FLAGS = (
    *("--pd-disaggregation", "--host", "127.0.0.1", "--port", str(ROUTER_PORT)),
    *("--discovery-provider", "file", "--discovery-file", f"{CONFIG_FOLDER}/{WORKERS_FILE}"),
    *("--discovery-check-interval-secs", "1", "--worker-startup-check-interval", "1"),
    *("--policy", "round_robin", "--disable-retries", "--disable-circuit-breaker"),
    *("--health-check-interval-secs", "5", "--health-check-timeout-secs", "2", "--health-failure-threshold", "2"),
    "--no-remove-unhealthy-workers",
    *("--request-timeout-secs", str(REQUEST_SECONDS), "--shutdown-grace-period-secs", str(DRAIN_SECONDS)),
    *("--idle-connection-timeout-secs", "60", "--upstream-pool-idle-timeout-secs", "3"),
    *("--max-payload-size", str(BODY_MIB * 2**20), "--max-concurrent-requests", "512", "--queue-size", "0"),
    *("--history-backend", "none", "--disable-tokenizer-autoload"),
    *("--prometheus-host", "127.0.0.1", "--prometheus-port", str(METRICS_PORT), "--log-json"),
)


def deployment(pool: PoolIdentity, spec: PoolSpec, revision: str, installation: Installation) -> Manifest:
    """Return the Deployment of a revision's routers."""
    own = labels(pool, Component.ROUTER, revision=revision)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(pool, router_name(pool, revision), own),
        "spec": {
            "replicas": spec.router.replicas,
            "selector": {"matchLabels": selector(pool, Component.ROUTER, revision=revision)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "revisionHistoryLimit": 0,
            "template": {
                "metadata": {"labels": own, "annotations": {CONF_ANNOTATION: conf_digest()}},
                "spec": _pod(pool, spec, revision, installation),
            },
        },
    }


def _pod(pool: PoolIdentity, spec: PoolSpec, revision: str, installation: Installation) -> Manifest:
    return {
        "serviceAccountName": service_account_name(pool),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": pod_security(),
        "terminationGracePeriodSeconds": LEAVING_SECONDS + DRAIN_SECONDS + 5,
        "containers": [_front(installation.front_image), _router(spec.router.image or installation.router_image)],
        "volumes": [
            {"name": "config", "configMap": {"name": router_config_name(pool, revision)}},
            {"name": "front-tmp", "emptyDir": {}},
            {"name": "router-tmp", "emptyDir": {}},
        ],
    }


def _front(image: str) -> Manifest:
    """Starts without the router, and answers 502 until that is there."""
    return {
        **_container(FRONT, image),
        # -e: before it has read its configuration, nginx writes to a log that it was built with.
        "command": ["nginx", "-e", "stderr", "-c", f"{CONFIG_FOLDER}/{CONF_FILE}"],
        "ports": [port("users", USERS_PORT), port("operator", OPERATOR_PORT)],
        "readinessProbe": _ready("/front"),
        "resources": {"requests": {"cpu": "20m", "memory": "32Mi"}, "limits": {"memory": "512Mi"}},
    }


def _router(image: str) -> Manifest:
    return {
        **_container(ROUTER, image),
        "command": ["smg"],
        "args": ["launch", *SMG_FLAGS],
        "env": [{"name": "HOME", "value": TEMPORARY_FOLDER}],
        "readinessProbe": _ready("/readiness"),  # smg: at least one prefill and one decode engine can be used
        # 512 requests at once may bring 64 MiB each; most bring kilobytes.
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "2Gi"}},
    }


def _container(name: str, image: str) -> Manifest:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": PULL_POLICY,
        "lifecycle": {"preStop": {"sleep": {"seconds": LEAVING_SECONDS}}},
        "securityContext": locked_down(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True},
            {"name": f"{name}-tmp", "mountPath": TEMPORARY_FOLDER},
        ],
    }


def _ready(path: str) -> Manifest:
    return {
        "httpGet": {"path": path, "port": OPERATOR_PORT, "scheme": "HTTP"},
        "periodSeconds": 1,
        "timeoutSeconds": 2,
        "failureThreshold": 2,
    }
