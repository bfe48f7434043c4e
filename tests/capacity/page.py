"""The page of which the figures of the capacity estimate are generated."""

from __future__ import annotations

from e2e.generated import Marked

PAGE = Marked("capacity.md", "python -m tests.capacity --write")
