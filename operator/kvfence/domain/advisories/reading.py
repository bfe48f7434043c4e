"""Reads parts of a document that may hold anything: of the kind that was meant, or a ValueError that says which."""

from __future__ import annotations

from typing import Any

SHOWN = 40
"""Characters of a name that a message quotes."""


def of_mapping(value: object, what: str) -> dict[str, Any]:
    """Return an object of JSON."""
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"{what} is missing or not an object")
    return value


def fields(value: object, what: str, known: frozenset[str]) -> dict[str, Any]:
    """Return an object that has no other fields than these: a slip in a name would go unseen."""
    found = of_mapping(value, what)
    for name in found:
        if name not in known:
            raise ValueError(f"{what} has a field {shown(name)} that is not known here")
    return found


def of_list(value: object, what: str, most: int, least: int = 1) -> list[Any]:
    """Return a list of so many items."""
    if not isinstance(value, list):
        raise ValueError(f"{what} is missing or not a list")  # noqa: TRY004 - of the document, not of our code
    if not least <= len(value) <= most:
        raise ValueError(f"{what} has {len(value)} items, and {least} to {most} are allowed")
    return value


def line(value: object, what: str, most: int) -> str:
    """Return text without line ends or anything that a terminal would obey."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{what} is missing or not text")
    if len(value) > most:
        raise ValueError(f"{what} has more than {most} characters")
    if not value.isprintable():
        raise ValueError(f"{what} has characters that cannot be printed")
    return value


def prose(value: object, what: str, most: int) -> str:
    """Return text that may have several lines."""
    if not isinstance(value, str) or not value.strip() or len(value) > most:
        return line(value, what, most)  # says what is wrong with it
    for part in filter(str.strip, value.split("\n")):
        line(part, what, most)
    return value


def shown(name: str) -> str:
    """Return a name for a message, cut short and printable."""
    return f'"{"".join(one if one.isprintable() else " " for one in name[:SHOWN])}"'
