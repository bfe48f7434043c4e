"""What collectors of logs put around a line in JSON: Docker, journald, Loki, CloudWatch, Elastic, Datadog, Google."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kvfence.engine.logs.prefix import Prefix, role_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_TEXTS = (
    "event.original", "log", "message", "msg", "MESSAGE", "line", "textPayload", "@message", "body",
    "jsonPayload.message", "jsonPayload.log", "jsonPayload.msg",
)  # fmt: skip
_TIMES = (
    "time", "timestamp", "@timestamp", "ts", "date", "_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP",
    "timeUnixNano",
)  # fmt: skip
_NAMES = (
    "pod_name", "pod", "container_name", "container", "_SYSTEMD_UNIT", "host", "service", "k8s_pod_name",
    "k8s_container_name", "kubernetes_pod_name", "kubernetes_container_name", "k8s.pod.name", "k8s.container.name",
    "kubernetes.pod.name", "kubernetes.container.name", "kubernetes.pod_name", "kubernetes.container_name",
    "kube_container_name", "CONTAINER_NAME", "_HOSTNAME",
)  # fmt: skip
_OTHER_NAMES = (
    "log.file.path", "filename", "logStreamName", "logStream", "@logStream", "hostname", "host.name", "instance", "app",
    "job", "SYSLOG_IDENTIFIER",
)  # fmt: skip
"""Less is told by these: the first of them, where none of the others is there."""

_WRAPPERS = ("", "_source", "fields", "attributes", "content")
"""Objects in which Elastic and Datadog put a record and its time."""

_PLACES = ("kubernetes", "docker", "labels", "resource.labels", "jsonPayload", "attributes.attributes")
"""Objects that tell whose a record is."""

_OF_REQUESTS = frozenset({"messages", "prompt", "text", "input_ids", "obj", "rid"})
"""Names that a request has: what stands beside them is a user's."""

_INSTANT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?)")
_EPOCH = re.compile(r"[0-9]{9,19}(?:\.[0-9]{1,9})?")
_YEARS = range(2000, 2100)

Entry = Mapping[str, Any]


def entries(body: str) -> tuple[Entry, ...] | None:
    """Return the objects that JSON holds a line each in; none when it is no JSON, or a request's."""
    if not body.startswith(("{", "[{")):
        return None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    listed = tuple(_listed(found))
    return None if any(_OF_REQUESTS & one.keys() for one in listed) else listed


def broken(body: str) -> bool:
    """Tell whether a record begins as JSON and does not end as it: it was cut."""
    if not body.startswith(('{"', '[{"')):
        return False
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return True
    return False


def _listed(found: Any) -> Iterator[Entry]:
    """Yield each entry of an answer that holds many; else the object itself."""
    if isinstance(found, list):
        yield from (one for one in found if isinstance(one, dict))
        return
    if isinstance(streams := at(found, "data.result"), list):
        yield from (entry for stream in streams if isinstance(stream, dict) for entry in _of_stream(stream))
        return
    for name in ("events", "hits.hits", "entries"):
        if isinstance(several := at(found, name), list):
            yield from (one for one in several if isinstance(one, dict))
            return
    yield found


def _of_stream(stream: Entry) -> Iterator[Entry]:
    """Yield the lines of one stream of Loki's own answer."""
    values = stream.get("values")
    for pair in values if isinstance(values, list) else ():
        if isinstance(pair, list) and len(pair) >= 2:
            yield {"labels": stream.get("stream"), "line": pair[1], "ts": pair[0]}


def at(fields: Entry, path: str) -> Any:
    """Return what stands at a path, whether its dots are nested objects or part of a name."""
    if path in fields or "." not in path:
        return fields.get(path)
    first, _, rest = path.partition(".")
    inside = fields.get(first)
    return at(inside, rest) if isinstance(inside, dict) else None


def unwrapped(fields: Entry, known: Prefix) -> tuple[Prefix, str]:
    """Return whose line a collector's JSON holds and when it was, and the line."""
    wrappers = [fields if not name else at(fields, name) for name in _WRAPPERS]
    records: list[Entry] = [one for one in wrappers if isinstance(one, dict)]
    text = next((found for one in records for name in _TEXTS if (found := _text(at(one, name)))), "")
    time = next((when for one in records for name in _TIMES if (when := _instant(at(one, name)))), None)
    name = _name(records)
    if name:
        known = replace(known, identity=f"{known.identity} {name}".strip(), role=known.role or role_of(name))
    return replace(known, outer=time) if known.outer is None else known, text


def _text(value: Any) -> str:
    """Return a text; Elastic gives a list of one, journald the bytes of one with colours in it."""
    if isinstance(value, list) and value and all(type(one) is int and 0 <= one < 256 for one in value):
        return bytes(value).decode(errors="replace")
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, str) else ""


def _name(records: list[Entry]) -> str:
    places = [*records, *(place for one in records for name in _PLACES if isinstance(place := at(one, name), dict))]
    tags = [_tags(one.get("tags")) for one in records]
    found = [text[:200] for one in [*places, *tags] for name in _NAMES if (text := _text(at(one, name)))]
    if not found:
        found = [text[:200] for one in places for name in _OTHER_NAMES if (text := _text(at(one, name)))][:1]
    return " ".join(dict.fromkeys(found))


def _tags(tags: Any) -> Entry:
    """Return Datadog's `name:value` tags by their names."""
    pairs = (tag.partition(":") for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()
    return {name: value for name, _, value in pairs if value}


def _instant(value: Any) -> str | None:
    """Return a time so that text sorts as time does: from ISO 8601, or from seconds since 1970 or parts of them."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value)
    if (instant := _INSTANT.match(text)) is not None:
        return f"{instant[1]} {instant[2].replace(',', '.')}"
    if _EPOCH.fullmatch(text) is None:
        return None
    seconds = float(text)
    while seconds >= 1e11:
        seconds /= 1000
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S.%f}" if moment.year in _YEARS else None
