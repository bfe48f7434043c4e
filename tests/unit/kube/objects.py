"""Live objects as the API server would return them, without one."""

from __future__ import annotations

import copy
from typing import Any

from kvfence.kube.drift import with_digest

Object = dict[str, Any]


def owned(fields: Object, manager: str = "kubectl-edit", **more: str) -> Object:
    """An entry of managedFields."""
    return {"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields} | more


def live_of(desired: Object, *entries: Object) -> Object:
    """What was applied, with who else set what."""
    live = copy.deepcopy(with_digest(desired))
    live["metadata"] |= {"uid": "u", "resourceVersion": "1", "managedFields": list(entries)}
    return live


def deployment(**engine: Any) -> Object:
    """A Deployment with one container and what is to be in it."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": 1,
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "engine", "image": "i"} | engine]},
            },
        },
    }


def engine_of(live: Object) -> Object:
    """The one container."""
    engine: Object = live["spec"]["template"]["spec"]["containers"][0]
    return engine


def config_map(**data: str) -> Object:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "shop"}, "data": data}
