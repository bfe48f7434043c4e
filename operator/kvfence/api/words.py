"""Writes the reference of conditions and reasons from the enums that declare them."""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from typing import TYPE_CHECKING

from kvfence.api.v1alpha1 import conditions, reasons
from kvfence.api.v1alpha1.conditions import ConditionType
from kvfence.api.v1alpha1.reasons import Reason

if TYPE_CHECKING:
    from enum import StrEnum
    from types import ModuleType

HEAD = """# Conditions and reasons

Generated from `operator/kvfence/api/v1alpha1` by `make generate`. Edit the enums, not this file.

Every condition of an InferencePool has a type, a status (True, False or Unknown), one of the reasons below, and a
message that names pods and figures and says what to do. Reasons never change and never carry a value: programs may
compare them. An Event of the pool has the reason of the condition that changed.
"""


def reference() -> str:
    """Return the document, in Markdown."""
    parts = [HEAD, "## Conditions\n", _table("type", conditions, ConditionType)]
    parts += ["\n## Reasons\n", _table("reason", reasons, Reason)]
    return "\n".join(parts)


def texts(module: ModuleType, words: type[StrEnum]) -> dict[str, str]:
    """Return the docstring below each member, by the member's name."""
    tree = ast.parse(inspect.getsource(module))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == words.__name__)
    found: dict[str, str] = {}
    for node, text in pairwise(body):
        if isinstance(node, ast.Assign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            (target,) = node.targets
            assert isinstance(target, ast.Name)
            found[target.id] = " ".join(str(text.value.value).split())
    return found


def _table(what: str, module: ModuleType, words: type[StrEnum]) -> str:
    said = texts(module, words)
    rows = [f"| `{word}` | {said[word.name]} |" for word in words]
    return "\n".join([f"| {what} | |", "|---|---|", *rows, ""])
