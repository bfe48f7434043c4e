"""How what was measured is drawn: small SVG files that are the same whenever the numbers are."""

from __future__ import annotations

from typing import Any

SETTINGS: Any = {
    "svg.hashsalt": "kvfence",  # names of clip paths are then the same each time
    "svg.fonttype": "none",
    "font.size": 8,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
}
"""Of matplotlib."""
NO_METADATA: dict[str, None] = dict.fromkeys(("Date", "Creator", "Format", "Type"))
"""What a file would say of when and by what it was drawn."""
