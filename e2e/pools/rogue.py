"""A server of an attacker's in the pool's namespace: it looks like an SGLang engine, and counts the prompts it gets."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from e2e.cluster.waiting import wait_for
from e2e.pools.asking import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.pools.pool import Pool

NAME = "rogue"
PORT = 31000
PROGRAM = Path(__file__).parent / "rogue_engine.py"
READY_SECONDS = 90.0


@contextmanager
def rogue(pool: Pool, image: str) -> Iterator[Place]:
    """Run one that the pool's router may reach.

    The routers' own NetworkPolicy shuts it off. It is opened here, so that what is tested is left to the front alone.

    Args:
        pool: whose router.
        image: one with `python3`.
    """
    kubectl, where = pool.stage.kubectl, ("--namespace", pool.namespace)
    kubectl.apply([_pod(pool, image), _opening(pool)])
    try:
        kubectl.run("wait", f"pod/{NAME}", "--for=condition=Ready", f"--timeout={READY_SECONDS:.0f}s", *where)
        address = kubectl.get("pod", NAME, *where)["status"]["podIP"]
        yield Place(NAME, address, PORT)
    finally:
        kubectl.try_run("delete", f"pod/{NAME}", f"networkpolicy/{NAME}", "--ignore-not-found", "--now", *where)


def prompts(place: Place) -> int:
    """How many prompts it was sent."""
    count: int = place.ask("/prompts").json
    return count


@contextmanager
def enrolled(router: Place, place: Place) -> Iterator[None]:
    """Have the router take it on, asked where the router itself listens; it is taken off the list at the end."""
    said = router.ask("/workers", body(place))
    assert said.status in (200, 201, 202), said.text
    try:
        wait_for("the router to take it on", lambda: _listed(router, place)[:1] == ["ready"], READY_SECONDS)
        yield
    finally:
        for one in router.ask("/workers").json["workers"]:
            if one["url"] == url(place):
                router.ask(f"/workers/{one['id']}", method="DELETE")
        wait_for("the router to forget it", lambda: not _listed(router, place), READY_SECONDS)


def url(place: Place) -> str:
    """Where it is, as a router is told."""
    return f"http://{place.address}:{place.port}"


def body(place: Place) -> dict[str, Any]:
    """What enrols it as a decode engine: every second request is its."""
    return {"url": url(place), "worker_type": "decode", "model_id": "tiny", "runtime_type": "sglang"}


def _listed(router: Place, place: Place) -> list[str]:
    return [one["status"] for one in router.ask("/workers").json["workers"] if one["url"] == url(place)]


def _pod(pool: Pool, image: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME, "namespace": pool.namespace, "labels": {"app": NAME}},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "containers": [
                {
                    "name": NAME,
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["python3", "-c", PROGRAM.read_text(), str(PORT)],
                    "readinessProbe": {"httpGet": {"path": "/health", "port": PORT}, "periodSeconds": 1},
                }
            ],
        },
    }


def _opening(pool: Pool) -> dict[str, Any]:
    """A NetworkPolicy that lets the pool's routers reach it: policies add up."""
    routers = {"kvfence.io/pool": pool.name, "kvfence.io/component": "router"}
    to = {"to": [{"podSelector": {"matchLabels": {"app": NAME}}}], "ports": [{"protocol": "TCP", "port": PORT}]}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": NAME, "namespace": pool.namespace},
        "spec": {"podSelector": {"matchLabels": routers}, "policyTypes": ["Egress"], "egress": [to]},
    }
