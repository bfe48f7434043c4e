"""Cuts at a column, as a terminal's copy and `cut -c` leave them."""

from __future__ import annotations

import random
import re

_OF_THE_ENGINE = re.compile(
    r"(server_args=|max_total_num_tokens=|KV Cache is allocated|Use sliding|Load weight begin|Memory pool end)"
)


def cut_at_column(rng: random.Random, text: str) -> str:
    """Every line ends at one column: keeps or loses. One line alone that reaches it is the reader's known limit."""
    width = rng.randint(60, 200)
    long = [line for line in text.split("\n") if len(line) >= width]
    if len({found[0] for line in long if (found := _OF_THE_ENGINE.search(line[: width - 20]))}) < 2:
        return text
    return "\n".join(line.encode()[:width].decode(errors="ignore") for line in text.split("\n"))
