"""Key material in what a server says of itself: found by name and by shape, taken out, and named without its value."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

DEPTH = 12
"""Levels of nesting that are looked through; what lies deeper counts as a key, since nobody looked at it."""

# Whatever may repeat in these is bounded: a hostile answer must not make them take long.
_SECRET_NAME = re.compile(
    r"api_?keys?$|admin_?keys?$|access_?key|secret|passw(or)?d|passphrase|keyfile_password|credential|private_?key$"
    r"|watermark\w{0,20}_key$|authorization|bearer|(^|_)(hf|auth|access|api|refresh|session|security|github)_?token$",
    re.IGNORECASE,
)
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
NAME_LIMIT = 200
"""Characters of a name within a setting that are looked at."""
_URL_WITH_PASSWORD = re.compile(r"://[^/\s:@]{0,200}:[^/\s@]+@")
_FLAG_WITH_KEY = re.compile(r"(?:api-key|password|secret|token)(?![\w-])[=\s]{1,9}\S", re.IGNORECASE)
_FLAG = re.compile(r"--[\w-]*$")
FLAG_LIMIT = 60
"""Characters of a flag's name ahead of its last word."""
_NAMED_WITHIN = re.compile(
    r"(?:api_?key|passw(?:or)?d|secret|access_?key|auth_token)\w{0,20}[\"']?\s{0,9}[:=]\s{0,9}[\"']?(?!none|null|true|false)"
    r"[^\s\"',}]{3,}",
    re.IGNORECASE,
)
"""Within a text that is no JSON: what Python prints of a dictionary, a cut one."""
_KEY_ITSELF = re.compile(r"\b(sk-[A-Za-z0-9_-]{16,}|hf_[A-Za-z0-9]{16,}|AKIA[A-Z0-9]{12,}|gh[pousr]_[A-Za-z0-9]{20,})")
_STRUCK = re.compile(r"[\W_x]*|.?(redacted|hidden|masked|struck|removed|filtered|none|null|unset).?", re.IGNORECASE)
"""What stands where a key was taken out."""


def without_keys(settings: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the settings that hold no key material, and the names of those that do.

    A setting is left out as a whole when anything within it is a key: a part of it may be readable, and then again may
    not. One that is meant for a key and is null stays: that none is set is told. Names that are no names of settings
    are left out too.
    """
    kept: dict[str, Any] = {}
    shown: set[str] = set()
    for name, value in settings.items():
        if not _NAME.fullmatch(name):
            continue
        if _holds_key(name, value, DEPTH):
            shown.add(name)
        elif value is None or not _SECRET_NAME.search(name):
            kept[name] = value
    return kept, tuple(sorted(shown))


def _holds_key(name: str, value: Any, depth: int) -> bool:
    if depth == 0:
        return isinstance(value, dict | list) or (isinstance(value, str) and bool(value))
    if isinstance(value, str):
        return _is_key(name, value) or _holds_key(name, _unpacked(value), depth - 1)
    if isinstance(value, dict):
        return any(_holds_key(str(inner), one, depth - 1) for inner, one in value.items())
    return isinstance(value, list) and any(_holds_key(name, one, depth - 1) for one in value)


def _is_key(name: str, value: str) -> bool:
    if _SECRET_NAME.search(name[:NAME_LIMIT]):
        return not _STRUCK.fullmatch(value)
    if any(shape.search(value) for shape in (_URL_WITH_PASSWORD, _NAMED_WITHIN, _KEY_ITSELF)):
        return True
    flags = _FLAG_WITH_KEY.finditer(value) if "--" in value else ()
    return any(_FLAG.search(value[max(0, one.start() - FLAG_LIMIT) : one.start()]) for one in flags)


def _unpacked(value: str) -> Any:
    """Some settings are JSON within a string."""
    if not value.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None
