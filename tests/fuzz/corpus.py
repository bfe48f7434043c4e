"""The field's logs with their answers, which stand in their own headers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "field" / "logs"
_END = "# ---\n"


@dataclass(frozen=True, slots=True)
class Field:
    """One log of somebody's."""

    name: str
    header: str
    body: str
    pool: int | None
    context: int | None
    failed: bool
    failed_before: bool
    """An earlier start in it failed."""
    newest_first: bool

    @property
    def whole(self) -> str:
        """The log as it is stored."""
        return self.header + self.body


def _number(header: str, name: str) -> int | None:
    found = re.search(rf"^# expected\.{name}: ([0-9]+)$", header, re.MULTILINE)
    return int(found[1]) if found else None


@cache
def field_logs() -> tuple[Field, ...]:
    """Return all of them."""
    found = []
    for path in sorted(FOLDER.glob("*.log")):
        before, end, body = path.read_text(encoding="utf-8").partition(_END)
        header = before + end
        failed = "# startup: failed" in header
        pool, context = _number(header, "pool_tokens"), _number(header, "context_len")
        found.append(
            Field(path.name, header, body, pool, context, failed, "scheduler died" in body, "newest first" in header)
        )
    return tuple(found)
