"""What a pod's object tells of the engine or router in it: how it was started, where it listens. Pure.

All of it may have been written by anybody; what is not of the shape that Kubernetes gives it counts as not told.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kvfence.cli.targets import NAMESPACE, POD
from kvfence.engine.bodies.keys import without_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SERVERS = ("sglang", "vllm", "smg")
"""Words by which the command of an engine or router is known."""
USUAL_PORTS = {"sglang": 30000, "vllm": 8000, "smg": 30000}
"""Where they listen when nothing says otherwise: `ServerArgs.port`, `vllm serve --port`, the router's `--port`."""
PORTS = 4
"""Ports of one container that are tried at most."""
MOST = 200
"""Flags, and variables, that are kept of one container."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container in which an engine or a router may run."""

    name: str
    ports: tuple[int, ...]
    """Where its server may listen, the likeliest first."""
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Its flags by SGLang's names for them, without key material."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Its variables as far as the pod has their values, without key material."""
    keys_shown: tuple[str, ...] = ()
    """Flags and variables whose secret values stand in the pod in clear."""
    notes: tuple[str, ...] = ()
    is_server: bool = True
    """Whether its command or image names an engine or a router; one that does not may be anything."""


@dataclass(frozen=True, slots=True)
class PodSeen:
    """One pod."""

    name: str
    namespace: str
    phase: str
    containers: tuple[Container, ...]
    """Those that look like a server; all, when none does."""
    waiting: str = ""
    """Why its containers wait, in Kubernetes' own word; empty when none does."""


def read(pod: object) -> PodSeen | None:
    """Return what the object tells; none when it is no pod."""
    metadata, spec, status = (_object(pod, key) for key in ("metadata", "spec", "status"))
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not (isinstance(name, str) and isinstance(namespace, str)):
        return None
    if not (POD.fullmatch(name) and NAMESPACE.fullmatch(namespace)):  # they become part of a path
        return None
    all_of_them = [one for one in _list(spec, "containers") if isinstance(one.get("name"), str)]
    servers = [one for one in all_of_them if _server(one)] or all_of_them
    phase = status.get("phase")
    return PodSeen(
        name,
        namespace,
        phase if isinstance(phase, str) else "",
        tuple(_container(one) for one in servers),
        _waiting(status),
    )


def _server(container: Mapping[str, Any]) -> str | None:
    """Return which server the container's command or image names."""
    said = " ".join(_words(container))
    image = container.get("image")
    for text in (said, image if isinstance(image, str) else ""):
        for word in SERVERS:
            if re.search(rf"(?<![a-z]){word}(?![a-z])", text, re.IGNORECASE):
                return word
    return None


def _container(container: Mapping[str, Any]) -> Container:
    flags, shown = without_keys(_flags(_words(container)))
    variables, told = without_keys(_variables(container))
    incomplete = bool(_list(container, "envFrom")) or any("valueFrom" in one for one in _list(container, "env"))
    note = f"Container {container['name']} has variables whose values are not in the pod; they are not known here."
    return Container(
        container["name"],
        _ports(container, flags),
        flags,
        variables,
        (*shown, *told),
        (note,) if incomplete else (),
        _server(container) is not None,
    )


def _words(container: Mapping[str, Any]) -> list[str]:
    """Return command and arguments as words, also where they are a line for a shell."""
    words: list[str] = []
    for part in (*_texts(container, "command"), *_texts(container, "args")):
        if re.search(r"\s", part) and re.search(r"(^|\s)--?[a-z]|serve", part):
            words += _split(part)
        else:
            words.append(part)
    return words


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line.replace("\\\n", " "))
    except ValueError:  # a quotation mark too many, or a comment's apostrophe
        return line.split()


def _flags(words: list[str]) -> dict[str, Any]:
    """Return the flags by the names of the settings that they set. What a shell would put in is not known here."""
    told = {name: value for name, value in _pairs(words) if isinstance(value, bool) or "$" not in value}
    return {name: _typed(told[name]) for name in list(told)[:MOST]}


def _pairs(words: list[str]) -> Iterator[tuple[str, str | bool]]:
    """Give each flag with its value; a flag without one is true, and one with several has them in one text."""
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        match = re.fullmatch(r"--([a-z][a-z0-9_-]{0,80})(?:=(.*))?", word, re.DOTALL)
        if match is None:
            continue
        values = [] if match[2] is None else [match[2]]
        while match[2] is None and at < len(words) and not re.match(r"--?[A-Za-z]|\d?[;&|#<>]", words[at]):
            values.append(words[at])
            at += 1
        yield match[1].replace("-", "_"), " ".join(values) if values else True


def _typed(value: str | bool) -> Any:
    """Return a number where it is one, as a server's own settings have it."""
    if isinstance(value, bool):
        return value
    if re.fullmatch(r"-?\d{1,18}", value):
        return int(value)
    return float(value) if re.fullmatch(r"-?\d{0,9}\.\d{1,12}", value) else value


def _variables(container: Mapping[str, Any]) -> dict[str, Any]:
    pairs = [(one.get("name"), one.get("value")) for one in _list(container, "env")[:MOST]]
    return {name: value for name, value in pairs if isinstance(name, str) and isinstance(value, str)}


def _ports(container: Mapping[str, Any], flags: Mapping[str, Any]) -> tuple[int, ...]:
    told = flags.get("port")
    if isinstance(told, int) and not isinstance(told, bool) and 0 < told < 65536:
        return (told,)
    declared = [one.get("containerPort") for one in _list(container, "ports") if one.get("protocol", "TCP") == "TCP"]
    usual = USUAL_PORTS.get(_server(container) or "")
    numbers = [one for one in (usual, *declared) if isinstance(one, int) and 0 < one < 65536]
    return tuple(dict.fromkeys(numbers))[:PORTS]


def _waiting(status: Mapping[str, Any]) -> str:
    for one in _list(status, "containerStatuses"):
        reason = _object(_object(one, "state"), "waiting").get("reason")
        if isinstance(reason, str):
            return reason
    for one in _list(status, "conditions"):
        if one.get("status") == "False" and isinstance(one.get("reason"), str):
            return str(one["reason"])
    return ""


def _object(of: object, key: str) -> Mapping[str, Any]:
    found = of.get(key) if isinstance(of, dict) else None
    return found if isinstance(found, dict) else {}


def _list(of: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = of.get(key)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _texts(of: Mapping[str, Any], key: str) -> list[str]:
    found = of.get(key)
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []
