"""What is known of one request that holds pages. It hangs on SGLang's own object for the request and goes with it."""

from __future__ import annotations

import secrets
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kvfence_engine.integrity.tags import LARGEST

if TYPE_CHECKING:
    from kvfence_engine.integrity.coverage import Mismatch
    from kvfence_engine.integrity.handover import HandOver
    from kvfence_engine.integrity.tally import Kind

_ATTRIBUTE = "kvfence_holder"


def draw() -> int:
    """Return a generation that nobody carries: a random one, so that a restart does not begin where it began."""
    return 1 + secrets.randbelow(LARGEST)


@dataclass
class Holder:
    """Of one request in one scheduler."""

    generation: int = field(default_factory=draw)
    contents: Any = None
    """On prefill: the content tags of all full pages of the prompt."""
    digest: int = 0
    """Of the prompt and its namespace, equal on both legs."""
    is_probe: bool = False
    """Whether the engine made it up to see whether it is well: it reads pages that were zeroed, and answers nobody."""
    came: bool = False
    """On decode: whether its KV came over a transfer that was not looked at yet."""
    mismatch: Mismatch | None = None
    proof: int = 0
    """On decode: of the bytes that prefill had, 0 when it said none."""
    was_verified: bool = False
    """Whether all of its pages were looked at, and found right."""
    found: Counter[Kind] = field(default_factory=Counter)
    """What this rank found of it."""
    peer: str = ""
    """On decode: `host:port` of the prefill engine that its KV comes from."""
    drill: Kind | None = None
    """The fault that it asks for in its own pages; a canary alone."""
    pages: int = 0
    """That were looked at last, and how many of them were right, and how many bytes in them were looked at."""
    pages_verified: int = 0
    bytes: int = 0
    handed: HandOver | None = None
    """What prefill says that it handed over."""
    retires: bool = False
    """On decode: whether a transfer may still write into its pages, so that nobody may have them after it."""

    @property
    def was_found(self) -> bool:
        """Whether this rank found anything of it that is not right."""
        return bool(self.found)


def holder_of(request: Any) -> Holder | None:
    """Return what is known of a request of SGLang's; none when it never held a page."""
    return getattr(request, _ATTRIBUTE, None)


def hang_on(request: Any, holder: Holder) -> Holder:
    """Keep it with the request."""
    setattr(request, _ATTRIBUTE, holder)
    return holder
