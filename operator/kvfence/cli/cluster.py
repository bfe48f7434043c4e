"""Pods as a source: what their servers answer through the API server, what they logged, how they were started."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from kvfence.cli import pods
from kvfence.cli.proxied import ADDRESS, Proxied
from kvfence.cli.reading import read_stream
from kvfence.cli.told import complete, joined, of_container
from kvfence.domain.diagnosis.seen import EngineSeen, RouterSeen, Seen, Unreadable
from kvfence.engine.bodies import inspect

if TYPE_CHECKING:
    from kvfence.cli.kubectl import Kubectl
    from kvfence.cli.pods import Container, PodSeen

MOST = 64
"""Pods of one selector that are looked at."""
AT_ONCE = 4
"""Pods that are asked at the same time; each needs a few runs of kubectl, one after the other."""

_KEY = (
    "Its server wants an API key, and kubectl can send none: run "
    "kubectl port-forward --namespace {namespace} pod/{pod} {port}, and give http://127.0.0.1:{port} with the key in "
    "KVFENCE_API_KEY."
)


class Cluster:
    """Reads pods through kubectl."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def selected(self, selector: str) -> tuple[Seen, ...]:
        """Return what the pods of a label selector tell."""
        said = await self._kubectl.say("get", "pods", f"--selector={selector}", "--output=json", "--chunk-size=100")
        listed = _object(said.out)
        if said.error or listed is None:
            return (Unreadable(selector, said.error or "kubectl printed something else than a list of pods."),)
        items = listed.get("items")
        found = [pod for pod in map(pods.read, items if isinstance(items, list) else []) if pod is not None]
        if not found:
            where = "that namespace" if self._kubectl.namespace else "the namespace of your context; another one: -n"
            return (Unreadable(selector, f"No pod with these labels is in {where}."),)
        seen = await asyncio.gather(*(self._pod(pod) for pod in found[:MOST]))
        left = len(found) - MOST
        over = (Unreadable(selector, f"{left} more pods have these labels; give a narrower selector for them."),)
        return tuple(one for of_one in seen for one in of_one) + (over if left > 0 else ())

    async def named(self, name: str) -> tuple[Seen, ...]:
        """Return what one pod tells."""
        said = await self._kubectl.say("get", "pod", name, "--output=json")
        pod = pods.read(_object(said.out))
        if said.error or pod is None:
            return (Unreadable(f"pod/{name}", said.error or "kubectl printed something else than a pod."),)
        return await self._pod(pod)

    async def _pod(self, pod: PodSeen) -> tuple[Seen, ...]:
        source = f"pod/{pod.name}"
        if not pod.containers:
            return (Unreadable(source, "It has no container."),)
        async with self._turn:
            found = [(container, await self._container(pod, container)) for container in pod.containers]
        useful = [
            one
            for container, seen in found
            for one in seen
            if container.is_server or isinstance(one, EngineSeen | RouterSeen)
        ]
        return tuple(useful) or tuple(one for _, seen in found for one in seen)

    async def _container(self, pod: PodSeen, container: Container) -> tuple[Seen, ...]:
        source = f"pod/{pod.name}" if len(pod.containers) == 1 else f"pod/{pod.name} ({container.name})"
        answers = await self._answers(pod, container, source) if pod.phase == "Running" else ()
        if complete(answers):
            return of_container(answers, container)
        logged = await self._logged(pod, container, source)
        return of_container(joined(answers, logged), container)

    async def _answers(self, pod: PodSeen, container: Container, source: str) -> tuple[Seen, ...]:
        """Ask the container's ports until one answers as a server."""
        last: tuple[Seen, ...] = ()
        for port in container.ports:
            web, stranger = (Proxied(self._kubectl, pod.namespace, pod.name, port) for _ in range(2))
            async with web:
                last = await inspect(web, f"{ADDRESS}:{port}", source, stranger)
            if any(isinstance(one, EngineSeen | RouterSeen) for one in last):
                return last
            if web.wants_key:
                return (Unreadable(source, _KEY.format(pod=pod.name, namespace=pod.namespace, port=port)),)
        return last

    async def _logged(self, pod: PodSeen, container: Container, source: str) -> tuple[Seen, ...]:
        """Read the log of the container's present start, from its beginning as far as the node still has it."""
        if pod.phase == "Pending":
            why = f" ({pod.waiting})" if pod.waiting else ""
            return (Unreadable(source, f"It is Pending{why} and runs nothing yet: kubectl describe pod {pod.name}"),)
        arguments = ("logs", pod.name, f"--container={container.name}")
        found = await self._kubectl.stream(lambda out: read_stream(out, source), *arguments)
        return (Unreadable(source, found),) if isinstance(found, str) else found


def _object(raw: bytes) -> dict[str, object] | None:
    try:
        read = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None
