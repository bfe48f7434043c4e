"""A server's own settings, as it prints them; what is secret among them is struck out, and its name kept."""

from __future__ import annotations

import ast
import json
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LONGEST = 1 << 16
"""Characters of settings that are read."""

_SECRET = re.compile(r"(?:api_key|password|passwd|secret|private_key|credential|(?:^|_)token|_pw)s?$", re.IGNORECASE)
_COUNTS = re.compile(r"_tokens$", re.IGNORECASE)
"""`max_total_tokens`: tokens of text, no secret."""

_MASK = re.compile(r"[*x.\u2022<>-]*|<?(?:redacted|masked|hidden|none)>?", re.IGNORECASE)
_CLOSERS = {"(": ")", "[": "]", "{": "}"}


def read_server_args(text: str) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the settings without what is secret, and the names of secrets that stood there in clear."""
    text = text[:LONGEST].strip()
    return struck_out(_read(text))


def struck_out(settings: dict[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return settings without what is secret, and the names of secrets that stood there in clear."""
    shown: list[str] = []
    kept = _clean(settings, shown)
    return MappingProxyType(kept), tuple(sorted(set(shown)))


def secret(name: str) -> bool:
    """Tell whether the value of a setting is secret."""
    return _SECRET.search(name) is not None and _COUNTS.search(name) is None


def _clean(settings: dict[Any, Any], shown: list[str]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in settings.items():
        name = str(key)
        if secret(name):
            if value not in (None, "", [], ()) and not (isinstance(value, str) and _MASK.fullmatch(value)):
                shown.append(name)
        elif isinstance(value, dict):
            kept[name] = _clean(value, shown)
        else:
            kept[name] = value
    return kept


def _read(text: str) -> dict[str, Any]:
    if text.startswith("{"):
        return _literal(text)
    inside = re.match(r"(?:[\w.]{1,60}\()", text)
    if inside is None:
        return {}
    return dict(_pairs(text[inside.end() :]))


def _literal(text: str) -> dict[str, Any]:
    for reader in (json.loads, ast.literal_eval):
        try:
            found = reader(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        if isinstance(found, dict):
            return found
    return {}


def _pairs(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the arguments of a call as Python prints one; one that was cut off is not there."""
    at = 0
    while (name := re.compile(r"\s*([A-Za-z_]\w{0,100})=").match(text, at)) is not None:
        end = _end(text, name.end())
        if end is None:
            return
        yield name[1], _value(text[name.end() : end].strip())
        if text[end] == ")":
            return
        at = end + 1


def _end(text: str, at: int) -> int | None:
    """Return where a value ends: at a comma or the closing bracket outside of it; none when the text ends before."""
    open_brackets: list[str] = []
    quote = ""
    while at < len(text):
        character = text[at]
        if quote:
            if character == "\\":
                at += 1
            elif character == quote:
                quote = ""
        elif character in "'\"":
            quote = character
        elif character in _CLOSERS:
            open_brackets.append(_CLOSERS[character])
        elif open_brackets and character == open_brackets[-1]:
            open_brackets.pop()
        elif not open_brackets and character in ",)":
            return at
        at += 1
    return None


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None if "(" in text or "=" in text else text
