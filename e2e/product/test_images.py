"""Pods of kvfence's own images and of the engine images: what users will run, as pods are allowed to run it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import kvfence
from e2e.cluster import busybox
from e2e.cluster.stage import Stage
from e2e.cluster.waiting import wait_for
from e2e.engines import images as engine_images
from e2e.engines.layers import IMAGES
from e2e.product import images

END_SECONDS = 120.0

RESTRICTED = {
    "runAsNonRoot": True,  # the kubelet looks at the user of the image
    "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
CPU = [{"name": "SGLANG_USE_CPU_ENGINE", "value": "1"}]  # as a pool without GPUs says in its `env`
OPERATOR = """
import importlib.metadata, os, pathlib
import kvfence, kopf
crds = sorted(path.name for path in pathlib.Path("/crds").iterdir())
print(os.getuid(), kvfence.__version__, importlib.metadata.version("kvfence"), *crds)
"""
ROUTER = "id -u && nginx -v 2>&1 && smg launch --help && python3 -c 'import smg.router'"
LOOK = "import os, sys, sglang; print(sglang.__version__, sys.executable, os.environ['PYTHONPATH'])"


def program(image: str, *command: str) -> dict[str, Any]:
    """Spec of a pod that runs one command of an image, restricted, to its end."""
    spec: dict[str, Any] = busybox.pod("x", list(command), image=image)["spec"]
    spec["containers"][0]["securityContext"] = RESTRICTED
    return spec | {"restartPolicy": "Never"}


def injected(engine: str, image: str) -> dict[str, Any]:
    """Spec of a pod that runs an image's `python3` with kvfence-engine brought by an init container."""
    own = ["--pool", "pool", "--pod", "pod", "--keys", "/keys", "--termination-log", "/dev/termination-log"]
    spec: dict[str, Any] = busybox.pod("x", ["python3", "/kvfence/kvfence_engine", *own, "--", "--port", "1"])["spec"]
    mount = {"name": "kvfence", "mountPath": "/kvfence"}
    spec["containers"][0] |= {"image": image, "env": CPU, "volumeMounts": [mount | {"readOnly": True}]}
    bring = {"name": "inject", "image": engine, "imagePullPolicy": "IfNotPresent", "securityContext": RESTRICTED}
    volumes = [{"name": "kvfence", "emptyDir": {}}]
    return spec | {
        "restartPolicy": "Never",
        "initContainers": [bring | {"volumeMounts": [mount]}],
        "volumes": volumes,
    }


@pytest.fixture(scope="module")
def ended(cluster: Stage) -> Iterator[dict[str, tuple[dict[str, Any], str]]]:
    """How each pod's container ended, and its log."""
    kubectl, namespace = cluster.kubectl, "test-product-images"
    product, without = images.load(cluster.images), engine_images.load_python(cluster.images)
    engine_images.load(cluster.images)
    specs = {
        "operator": program(product.operator, "python3", "-c", OPERATOR),
        "router": program(product.router, "/bin/sh", "-c", ROUTER),
        "engine": program(IMAGES["0.5.23"], "python3", "-c", LOOK),
        "old": injected(product.engine, IMAGES["0.5.19"]),
        "without": injected(product.engine, without),
    }
    specs["engine"]["containers"][0] |= {"env": CPU, "securityContext": {}}  # in a user's image, a user is root
    pods = [busybox.pod(name, []) | {"spec": spec} for name, spec in specs.items()]
    kubectl.run("create", "namespace", namespace)
    try:
        for pod in pods:
            pod["metadata"]["namespace"] = namespace
        kubectl.apply(pods)

        def states() -> dict[str, dict[str, Any]]:
            found = kubectl.get("pods", "--namespace", namespace)["items"]
            return {pod["metadata"]["name"]: ends(pod) for pod in found}

        wait_for("the pods to end", lambda: all(states().values()), END_SECONDS, every=0.5)
        logs = {name: kubectl.run("logs", "--namespace", namespace, name) for name in specs}
        yield {name: (state, logs[name]) for name, state in states().items()}
    finally:
        kubectl.try_run("delete", "namespace", namespace, "--wait=false")


def ends(pod: dict[str, Any]) -> dict[str, Any]:
    (status,) = pod["status"].get("containerStatuses") or [{"state": {}}]
    found: dict[str, Any] = status["state"].get("terminated", {})
    assert "CreateContainerConfigError" not in json.dumps(status), status
    return found


Ended = dict[str, tuple[dict[str, Any], str]]


def test_the_operator_and_its_packages_are_there_for_a_user_who_may_write_nothing(ended: Ended) -> None:
    state, log = ended["operator"]
    assert state["exitCode"] == 0, log
    version = kvfence.__version__
    assert log.splitlines() == [f"65532 {version} {version} kvfence.io_inferencepools.yaml"]


def test_nginx_and_smg_are_there_for_a_user_who_may_write_nothing(ended: Ended) -> None:
    state, log = ended["router"]
    assert state["exitCode"] == 0, log
    user, nginx, *usage = log.splitlines()
    assert (user, nginx) == ("65532", "nginx version: nginx/1.22.1")
    assert "--discovery-provider" in "\n".join(usage)


def test_an_engine_image_has_sglang_for_its_python3_without_further_settings(ended: Ended) -> None:
    state, log = ended["engine"]
    assert state["exitCode"] == 0, log
    assert log.splitlines()[-1] == "0.5.23 /opt/venv/bin/python3 /opt/shim"


WHY = {
    "without": "main: there is no SGLang in this image: /usr/bin/python3 does not find it. Use an image ",
    "old": "main: SGLang 0.5.19 is not one that this kvfence-engine was proven with: 0.5.23",
}


@pytest.mark.parametrize(("name", "why"), WHY.items(), ids=WHY.keys())
def test_an_image_that_will_not_do_says_so_in_the_pods_status(ended: Ended, name: str, why: str) -> None:
    state, log = ended[name]
    assert state["exitCode"] == 78, log
    assert state["message"].startswith(f"kvfence-engine: the engine did not run: {why}")
    assert len(state["message"].splitlines()) == 1
