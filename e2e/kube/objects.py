"""Objects like those of a pool, with what the API server is known to write in another way."""

from __future__ import annotations

from typing import Any

LABELS = {"app.kubernetes.io/managed-by": "kvfence", "kvfence.io/pool": "shop", "kvfence.io/revision": "abc"}

Object = dict[str, Any]


def _meta(namespace: str, name: str) -> Object:
    return {"name": name, "namespace": namespace, "labels": LABELS, "annotations": {}}


def _engine() -> Object:
    return {
        "name": "engine",
        "image": "example.invalid/sglang:1",
        "command": ["python3", "/kvfence/kvfence_engine"],
        "args": ["--pool", "uid", "--", "--page-size", "16"],
        "env": [
            {"name": "EMPTY", "value": ""},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token", "optional": False}}},
            {"name": "HOST", "value": "$(POD_IP)"},
        ],
        "ports": [{"name": "http", "containerPort": 30000}, {"containerPort": 8901, "protocol": "TCP", "hostPort": 0}],
        "resources": {
            "limits": {"cpu": "2000m", "memory": "1.5Gi", "nvidia.com/gpu": 1},
            "requests": {"cpu": 1, "memory": "1024Mi"},
        },
        "startupProbe": {"httpGet": {"path": "/started", "port": 8901}, "periodSeconds": 2, "failureThreshold": 900},
        "readinessProbe": {
            "httpGet": {"path": "/ready", "port": 8901},
            "initialDelaySeconds": 0,
            "periodSeconds": 1,
            "timeoutSeconds": 5,
            "failureThreshold": 1,
        },
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "code", "mountPath": "/kvfence", "readOnly": True},
            {"name": "shm", "mountPath": "/dev/shm", "readOnly": False},  # noqa: S108 - where SGLang has it
            {"name": "keys", "mountPath": "/kvfence-keys", "subPath": ""},
        ],
    }


def _volumes() -> list[Object]:
    return [
        {"name": "code", "emptyDir": {}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1024Mi"}},
        {"name": "keys", "configMap": {"name": "shop-kvfence-keys"}},
        {
            "name": "about",
            "downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]},
        },
    ]


def deployment(namespace: str) -> Object:
    """An engine's, with the values that come back in another form."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _meta(namespace, "shop-prefill-abc"),
        "spec": {
            "replicas": 0,
            "minReadySeconds": 0,
            "revisionHistoryLimit": 0,
            "paused": False,
            "progressDeadlineSeconds": 3600,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"kvfence.io/pool": "shop"}},
            "template": {
                "metadata": {"labels": LABELS, "annotations": {}},
                "spec": {
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "hostNetwork": False,
                    "nodeSelector": {"gpu": ""},
                    "imagePullSecrets": [],
                    "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                    "serviceAccountName": "shop-kvfence",
                    "terminationGracePeriodSeconds": 60,
                    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
                    "topologySpreadConstraints": [
                        {
                            "maxSkew": 1,
                            "topologyKey": "kubernetes.io/hostname",
                            "whenUnsatisfiable": "ScheduleAnyway",
                            "labelSelector": {"matchLabels": {"kvfence.io/pool": "shop"}},
                        }
                    ],
                    "initContainers": [
                        {
                            "name": "inject",
                            "image": "example.invalid/kvfence-engine:1",
                            "resources": {},
                            "volumeMounts": [{"name": "code", "mountPath": "/target"}],
                        }
                    ],
                    "containers": [_engine()],
                    "volumes": _volumes(),
                },
            },
        },
    }


def service(namespace: str) -> Object:
    """The pool's."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _meta(namespace, "shop"),
        "spec": {
            "type": "ClusterIP",
            "selector": {"kvfence.io/pool": "shop", "kvfence.io/component": "router"},
            "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
            "publishNotReadyAddresses": False,
        },
    }


def config_map(namespace: str) -> Object:
    """With an empty file in it."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _meta(namespace, "shop-router-abc"),
        "data": {"nginx.conf": "events {}\n", "empty": ""},
    }


def network_policy(namespace: str) -> Object:
    """Users' port open to all, the operator's to one namespace."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _meta(namespace, "shop-kvfence-router"),
        "spec": {
            "podSelector": {"matchLabels": {"kvfence.io/pool": "shop"}},
            "policyTypes": ["Ingress"],
            "ingress": [
                {"from": [], "ports": [{"port": 8080}]},
                {
                    "from": [{"podSelector": {"matchLabels": {"app": "kvfence"}}}],
                    "ports": [{"port": 8082, "protocol": "TCP"}],
                },
            ],
            "egress": [],
        },
    }


def controller_revision(namespace: str) -> Object:
    """With what was rendered for a revision."""
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": _meta(namespace, "shop-abc"),
        "revision": 0,
        "data": {
            "templates": {"prefill": {"env": [{"name": "A", "value": ""}], "volumes": [], "x": {}, "cpu": "1000m"}}
        },
    }


def service_account(namespace: str) -> Object:
    """Without a token."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": _meta(namespace, "shop-kvfence"),
        "automountServiceAccountToken": False,
    }


ALL = (deployment, service, config_map, network_policy, controller_revision, service_account)
