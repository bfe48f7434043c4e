"""Events: what happened to an object, for people who look at it with kubectl."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from kvfence.kube.kinds import EVENT

if TYPE_CHECKING:
    from datetime import datetime

NOTE_CHARACTERS = 1024
"""The API server's limit on a note, in bytes."""

NAME_CHARACTERS = 220
"""Of the object's name in an Event's, which has at most 253."""

REASON_CHARACTERS = 128
"""The API server's limit on a reason and an action."""

REPORTER = "kvfence.io/operator"


def event(
    regarding: dict[str, Any], reason: str, message: str, *, warning: bool, now: datetime, instance: str = "kvfence"
) -> dict[str, Any]:
    """Return an Event to be created with `Kubernetes.create`.

    Args:
        regarding: the object it is about.
        reason: one word for machines.
        message: for people; cut when it is too long. No prompt, completion or key.
        warning: whether somebody should look.
        now: with a time zone. The same event at the same microsecond has the same name, and is there once.
        instance: which operator says it, such as its pod's name.
    """
    meta = regarding["metadata"]
    moment = now.timestamp()
    told = hashlib.sha256(f"{meta.get('uid')} {reason} {message} {moment:.6f}".encode(errors="replace")).hexdigest()[
        :16
    ]
    return {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.kind,
        "metadata": {"name": f"{meta['name'][:NAME_CHARACTERS].rstrip('.-')}.{told}", "namespace": meta["namespace"]},
        "eventTime": now.isoformat(timespec="microseconds"),
        "type": "Warning" if warning else "Normal",
        "reason": reason[:REASON_CHARACTERS],
        "action": reason[:REASON_CHARACTERS],
        "note": _cut(message),
        "reportingController": REPORTER,
        "reportingInstance": instance[:REASON_CHARACTERS],
        "regarding": {
            "apiVersion": regarding["apiVersion"],
            "kind": regarding["kind"],
            "name": meta["name"],
            "namespace": meta["namespace"],
        }
        | ({"uid": meta["uid"]} if "uid" in meta else {}),
    }


def _cut(message: str) -> str:
    raw = message.encode(errors="replace")
    if len(raw) <= NOTE_CHARACTERS:
        return raw.decode()
    return raw[: NOTE_CHARACTERS - 3].decode(errors="ignore") + "..."
