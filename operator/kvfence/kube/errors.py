"""What can go wrong in talking to the API server, in words for people."""

from __future__ import annotations

import json
import re
from typing import Any

MESSAGE_CHARACTERS = 900
"""How much is kept of what the API server says. An Event's note and a condition have room for it."""

_VALUE = re.compile(
    r'(?P<what>(?:Invalid|Unsupported|Duplicate) value: )(?:"(?:[^"\\]|\\.)*"|`[^`]*`|\{.*\}|\[.*\]|[^\s:,]+)'
)
_RBAC = re.compile(r'is forbidden: User ".*" cannot ')
_GOT = re.compile(r"(?P<what>, got )&?value\.valueUnstructured\{.*?\}(?=\s|$)|(?P<at>\bgot ).*", re.DOTALL)


class KubernetesError(Exception):
    """The API server could not or would not do something.

    Attributes:
        status: the HTTP status; none when there was no answer.
        reason: the API server's word for machines, such as `AlreadyExists`.
    """

    def __init__(self, status: int | None, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message


class Conflict(KubernetesError):  # noqa: N818 - the API server's own words
    """The object is another one, or was changed meanwhile; look again."""


class Invalid(KubernetesError):  # noqa: N818
    """What was asked for can never be done as it stands."""


class Forbidden(KubernetesError):  # noqa: N818
    """RBAC, a quota or an admission policy says no, or the credentials are not good."""


class NotFound(KubernetesError):  # noqa: N818
    """The object, or the very kind of object, is not there."""


class NamespaceTerminating(KubernetesError):  # noqa: N818
    """The namespace is being deleted: nothing can be made there, and nothing needs to be."""


class Contested(KubernetesError):  # noqa: N818
    """Something in the cluster puts back at once what was taken away."""


class Unreachable(KubernetesError):  # noqa: N818
    """No answer, or none for now; the same request may succeed later."""


class Unconfigured(KubernetesError):  # noqa: N818
    """It is not known where the API server is, or with which credentials to ask."""


def refusal(status: int, body: bytes, doing: str) -> KubernetesError:
    """Return the error that an answer with an error status means.

    Args:
        status: the HTTP status.
        body: the answer; a `Status` object unless something stands between us and the API server.
        doing: what was tried, with the object: `apply Deployment shop/web`.
    """
    said = _status_object(body)
    reason = said.get("reason") if isinstance(said.get("reason"), str) else ""
    message = said.get("message") if isinstance(said.get("message"), str) else ""
    words = plain(message or "") or f"HTTP status {status} without a reason"
    if "NamespaceTerminating" in _causes(said):
        return NamespaceTerminating(status, "NamespaceTerminating", f"cannot {doing}: its namespace is being deleted")
    kind = _CLASSES.get(status, Unreachable if _is_the_servers(status, message or "") else Invalid)
    more = _advice(kind, status, message or "")
    return kind(status, reason or "", f"cannot {doing}: {words}{more}")


def plain(message: str) -> str:
    """Return the API server's words without line breaks, without the values that it quotes, and cut short.

    A value may be a secret: the API server repeats a wrong environment variable in full.
    """
    told = _VALUE.sub(r"\g<what>(not shown)", message)
    told = _GOT.sub(lambda found: f"{found['what'] or found['at']}another", told)
    told = " ".join("".join(c if c.isprintable() else " " for c in told).split())
    return told if len(told) <= MESSAGE_CHARACTERS else told[: MESSAGE_CHARACTERS - 3] + "..."


_CLASSES: dict[int, type[KubernetesError]] = {
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    408: Unreachable,
    409: Conflict,
    429: Unreachable,
}


def _is_the_servers(status: int, message: str) -> bool:
    """Whether it is the server's fault, and may be over later. An apply of what has no schema is a 500, too."""
    return status >= 500 and "failed to create typed patch object" not in message


def _advice(kind: type[KubernetesError], status: int, message: str) -> str:
    if kind is Unreachable:
        return "; it is tried again"
    if status == 401:
        return "; the credentials have expired or are not known: give the operator new ones"
    if status == 403 and _RBAC.search(message):
        return "; this is RBAC: bind a Role with that verb and resource to that user, or install the chart anew"
    return ""


def _status_object(body: bytes) -> dict[str, Any]:
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):  # a proxy's page, say; its status stands
        return {}
    return said if isinstance(said, dict) and said.get("kind") == "Status" else {}


def _causes(said: dict[str, Any]) -> list[str]:
    match said:
        case {"details": {"causes": [*causes]}}:
            return [str(cause.get("reason")) for cause in causes if isinstance(cause, dict)]
    return []
