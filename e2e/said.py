"""An HTTP answer, as end-to-end tests look at it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Said:
    """What came back."""

    status: int
    text: str
    seconds: float

    @property
    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.text)
