"""Whether the ranks of one engine are alike in what they defend. Pure.

They load the same plugin with the same settings, so they are, unless a process of the engine got another environment,
another image or another pool. Then what one rank attests is not true of the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvfence_engine.state import Rank

ALIKE = ("version", "pageTagging", "pageScrubbing", "coverage", "selfTest")
"""Of what each rank attests."""


def disagreement(ranks: Sequence[Rank]) -> str | None:
    """Return in what two ranks differ, as a sentence; none when they do not. Replicas may have pools of other sizes."""
    for rank in ranks[1:]:
        if rank.page_size != ranks[0].page_size:
            return _sentence(ranks[0].index, rank.index, "page size", ranks[0].page_size, rank.page_size)
        for name in ALIKE:
            one, other = ranks[0].integrity.get(name), rank.integrity.get(name)
            if one != other:
                return _sentence(ranks[0].index, rank.index, name, one, other)
    return None


def _sentence(first: int, second: int, what: str, one: object, other: object) -> str:
    return f"ranks {first} and {second} differ in {what} ({one} and {other}): start all from one image and environment"
