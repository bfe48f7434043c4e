"""Reads a frozen pod template: what its engine is told on the command line and in its environment."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def variables(template: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables that the container `engine` is given in clear, by name."""
    containers = (template.get("spec") or {}).get("containers") or ()
    given = next((one.get("env") or () for one in containers if one.get("name") == "engine"), ())
    return {str(one["name"]): str(one["value"]) for one in given if "name" in one and "value" in one}


def flag(template: Mapping[str, Any], name: str) -> str | None:
    """Return the word behind a flag of the container `engine`; `None` when the flag is not there.

    The last one counts, as for SGLang.
    """
    containers = (template.get("spec") or {}).get("containers") or ()
    arguments = next((one.get("args") or () for one in containers if one.get("name") == "engine"), ())
    found = None
    for word, following in pairwise(arguments):
        if word == name:
            found = following
    return found
