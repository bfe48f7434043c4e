"""A sound OSV document, and changes to it."""

from __future__ import annotations

import copy
from typing import Any

SOUND: dict[str, Any] = {
    "schema_version": "1.6.0",
    "id": "KVF-2026-9001",
    "modified": "2026-11-01T00:00:00Z",
    "aliases": ["CVE-2026-99999"],
    "summary": "A fault",
    "details": "What is known.\nAnd what is not.",
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "SGLang"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0.5.11"}, {"fixed": "0.5.20"}]}],
        }
    ],
    "references": [{"type": "REPORT", "url": "https://github.com/sgl-project/sglang/issues/1"}],
    "database_specific": {"kvfence": {"severity": "high", "whatToDo": "Run 0.5.23."}},
}


def document(**changed: Any) -> dict[str, Any]:
    """Return the sound document with other fields."""
    return copy.deepcopy(SOUND) | changed


def ranged(*events: dict[str, str], name: str = "sglang") -> dict[str, Any]:
    """Return a document about one package with one range."""
    package = {"ecosystem": "PyPI", "name": name}
    return document(affected=[{"package": package, "ranges": [{"type": "ECOSYSTEM", "events": list(events)}]}])


def conditioned(condition: object) -> dict[str, Any]:
    """Return a document about all releases of sglang under a condition."""
    section = {"severity": "high", "whatToDo": "Run 0.5.23.", "condition": condition}
    return ranged({"introduced": "0"}) | {"database_specific": {"kvfence": section}}
