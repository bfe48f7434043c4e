"""From the bytes of a file to what a server's answer in it tells."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kvfence.domain.diagnosis.seen import EngineSeen, RouterSeen, Unreadable
from kvfence.engine import fields
from kvfence.engine.bodies import routers, sglang
from kvfence.engine.bodies.merging import rows
from kvfence.engine.bodies.said import Said

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.domain.diagnosis.seen import Seen

BODY_LIMIT = 8_000_000
"""Bytes of an answer. `/server_info` has some 19,000, and as many again for each rank of data parallelism."""

LIST_LIMIT = 1024
"""Answers in one list."""

_REFUSALS = frozenset({"error", "detail", "message", "object", "type", "param", "code"})
"""Of an error body, which holds nothing else."""


def read(raw: bytes, source: str) -> tuple[Seen, ...] | None:
    """Return what a body tells, or a JSON list of bodies of several servers.

    Returns:
        None when it is no JSON body of a server: it may be a log then.
    """
    if len(raw) > BODY_LIMIT:
        return None
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        return _object(value, source)
    if not isinstance(value, list):
        return None
    return _list(value, source)


def answers(body: Mapping[str, Any]) -> tuple[Said, ...]:
    """Return what an object says of one engine, read as each of the answers that it looks like."""
    said: list[Said] = []
    if sglang.is_server_info(body):
        said.append(sglang.server_info(body))
    elif sglang.is_model_info(body):
        said.append(sglang.model_info(body))
    if sglang.is_loads(body):
        said.append(sglang.loads(body))
    if sglang.is_models(body):
        said.append(sglang.models(body))
    if not said and body.keys() == {"version"} and (version := fields.text(body["version"])):
        said.append(Said("/version", version=version))
    return tuple(said)


def _object(body: Mapping[str, Any], source: str) -> tuple[Seen, ...] | None:
    if routers.is_workers(body):
        listed, unread = routers.addresses(body)
        made = routers.made_workers(body)
        return (RouterSeen(source, product=made, workers=listed, workers_unread=unread),)
    if (router := routers.made_models(body)) is not None:
        return (RouterSeen(source, product=router),)
    if said := answers(body):
        return rows(source, said)
    if body and body.keys() <= _REFUSALS and ("error" in body or "detail" in body or body.get("object") == "error"):
        why = "This is an error that a server answered, and not what it was asked for: save /server_info once more."
        return (Unreadable(source, why),)
    return None


def _list(bodies: list[Any], source: str) -> tuple[Seen, ...] | None:
    if len(bodies) > LIST_LIMIT:
        return None
    each = [_object(one, f"{source} [{at}]") if isinstance(one, dict) else None for at, one in enumerate(bodies, 1)]
    if not any(isinstance(one, EngineSeen | RouterSeen) for found in each if found for one in found):
        return None
    why = "This entry of the list is no answer of a server that is known: /server_info is."
    found: list[Seen] = []
    for at, one in enumerate(each, 1):
        found += one if one is not None else (Unreadable(f"{source} [{at}]", why),)
    return tuple(found)
