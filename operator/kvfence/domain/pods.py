"""Reads a Pod object: whether its engine has started, and if not, what stands in the way, in words for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvfence.api.v1alpha1.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

QUOTED = 300
"""Characters of a kubelet's message or of the end of a log that are quoted."""

_IMAGE = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
_BACK_OFF = "CrashLoopBackOff"
_ON_THE_WAY = frozenset({"ContainerCreating", "PodInitializing", _BACK_OFF, ""})
"""Reasons of a waiting container that say nothing of what it cannot be made from."""

AGAIN = 2
"""Restarts from which on a container that ended is not expected to come up by itself. One that is started anew after
its first end, a serving engine that was killed for example, mostly does."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What stands in the way of a pod, as far as can be seen."""

    reason: Reason
    """`ENGINES_STARTING` while the kubelet starts the container anew and that may do."""
    words: str
    """A sentence that says what was seen and what to do."""


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What the kubelet says of one pod."""

    name: str
    uid: str
    role: str
    ip: str | None
    deleting: bool
    started: bool
    """The startup probe of the main container passed in its present run."""
    ready: bool
    image_id: str
    trouble: Trouble | None


def pod_facts(pod: Mapping[str, Any], container: str, role: str = "") -> PodFacts:
    """Return what counts of a Pod object.

    Args:
        pod: as the API server has it; what is missing counts as not there yet.
        container: the name of the main container.
        role: of which role the pod is.
    """
    metadata, status = _part(pod, "metadata"), _part(pod, "status")
    main = next((one for one in _parts(status, "containerStatuses") if one.get("name") == container), {})
    name = str(metadata.get("name") or "")
    return PodFacts(
        name=name,
        uid=str(metadata.get("uid") or ""),
        role=role,
        ip=str(status.get("podIP") or "") or None,
        deleting=bool(metadata.get("deletionTimestamp")) or status.get("phase") in ("Failed", "Succeeded"),
        started=main.get("started") is True and _is_running(main),
        ready=any(c.get("type") == "Ready" and c.get("status") == "True" for c in _parts(status, "conditions")),
        image_id=str(main.get("imageID") or ""),
        trouble=_trouble(name, status, main),
    )


def _part(of: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """An object within an object; what is missing, or is none, is an empty one."""
    value = of.get(key)
    return value if isinstance(value, dict) else {}


def _parts(of: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = of.get(key)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _is_running(container: Mapping[str, Any]) -> bool:
    return "running" in _part(container, "state")


def _trouble(name: str, status: Mapping[str, Any], main: Mapping[str, Any]) -> Trouble | None:
    if unscheduled := _unscheduled(status):
        return Trouble(Reason.POD_NOT_SCHEDULED, f"Pod {name} has no node: {unscheduled}")
    for one in (*_parts(status, "initContainerStatuses"), main, *_parts(status, "containerStatuses")):
        if found := _stuck(name, one) or _crashed(name, one):
            return found
    return None


def _unscheduled(status: Mapping[str, Any]) -> str:
    for condition in _parts(status, "conditions"):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return quoted(str(condition.get("message") or "")) or "the scheduler does not say why."
    return ""


def _stuck(name: str, container: Mapping[str, Any]) -> Trouble | None:
    """A container that was never run, and why."""
    waiting = _part(_part(container, "state"), "waiting")
    reason, said = quoted(str(waiting.get("reason") or "")), quoted(str(waiting.get("message") or ""))
    if reason in _IMAGE:
        image = quoted(str(container.get("image") or ""))
        return Trouble(
            Reason.IMAGE_NOT_PULLED,
            f"Pod {name} cannot get image {image} ({reason}: {said}). Correct the image, or give the pool a pull "
            "secret (roles[].template.spec.imagePullSecrets).",
        )
    if reason not in _ON_THE_WAY:
        return Trouble(
            Reason.CONTAINER_NOT_CREATED,
            f"Container {container.get('name')} of pod {name} cannot be made ({reason}: {said}). Look at what the pool "
            "names: Secrets, volumes, securityContext.",
        )
    return None


def _crashed(name: str, container: Mapping[str, Any]) -> Trouble | None:
    """A container whose last run ended badly and that is not running well again."""
    state = _part(container, "state")
    if container.get("started") is True and _is_running(container):
        return None
    ended = _part(state, "terminated") or _part(_part(container, "lastState"), "terminated")
    code, count = ended.get("exitCode"), container.get("restartCount")
    backs_off = _part(state, "waiting").get("reason") == _BACK_OFF
    if not ended or (code == 0 and not backs_off):
        return None
    again = backs_off or (isinstance(count, int) and count >= AGAIN)
    what = f"Container {container.get('name')} of pod {name}"
    if ended.get("reason") == "OOMKilled":
        return Trouble(
            Reason.ENGINE_OUT_OF_MEMORY if again else Reason.ENGINES_STARTING,
            f"{what} was killed for using more memory than its limit. Raise "
            "roles[].template.spec.containers[].resources.limits.memory.",
        )
    said = last_line(str(ended.get("message") or ""))
    words = f"It ended with: {said}" if said else "It left no words: look at its log (kubectl logs --previous)."
    return Trouble(
        Reason.ENGINE_FAILED if again else Reason.ENGINES_STARTING,
        f"{what} ended with status {code} (restarts so far: {count or 0}). {words}",
    )


def last_line(text: str) -> str:
    """Return the last line of a log's end that says something, cut short: where a Python traceback says what it is."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return quoted(lines[-1]) if lines else ""


def quoted(text: str) -> str:
    """Return text from outside in one line of bounded length."""
    plain = "".join(c if c.isprintable() else " " for c in text[: QUOTED + 1])
    return plain if len(plain) <= QUOTED else plain[: QUOTED - 3] + "..."
