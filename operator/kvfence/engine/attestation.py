"""What the ranks of an engine say of their defences, as its launcher and its server pass it on. Pure.

It comes out of a pod that users may have had a hand in: what is not of the right type is not said at all.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from kvfence.domain.engines import Attested
from kvfence.engine import fields

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["COUNTS", "MODES", "NONCE", "attested", "draw", "found", "repeats"]

NONCE = "kvfence_nonce"
"""Of the query of `/server_info`; a server without kvfence-engine takes no notice of it."""

MODES = ("pageTagging", "pageScrubbing", "coverage")
COUNTS = (
    *("pagesExpected", "pagesVerified", "requestsVerified", "requestsUnverified", "requestsFailed"),
    *("bytesZeroed", "pagesRetired"),
)
MAX_KINDS = 32
"""Of findings; kvfence-engine knows nine."""


def draw() -> str:
    """Return a nonce that nobody else has."""
    return secrets.token_hex(16)


def attested(said: Mapping[str, object]) -> Attested | None:
    """Return what one rank of the launcher's status attests; none when it does not say, or not all of it.

    Args:
        said: one of `ranks`.
    """
    integrity = said.get("integrity")
    nonces = fields.texts(said.get("attested"))
    if not isinstance(integrity, dict) or nonces is None:
        return None
    version = fields.text(integrity.get("version"))
    modes = {name: fields.text(integrity.get(name)) for name in MODES}
    counts = {name: fields.number(integrity.get(name)) for name in COUNTS}
    wrong = found(integrity.get("found"))
    if not version or wrong is None or None in modes.values() or None in counts.values():
        return None
    return Attested(
        version=version,
        self_tested=integrity.get("selfTest") == "passed",
        modes={name: mode for name, mode in modes.items() if mode is not None},
        nonces=nonces,
        counts={name: count for name, count in counts.items() if count is not None},
        found=wrong,
    )


def repeats(nonce: str, ranks: tuple[Attested | None, ...]) -> bool:
    """Return whether every rank has seen this nonce; false when there is no rank."""
    return bool(ranks) and all(rank is not None and nonce in rank.nonces for rank in ranks)


def found(said: object) -> dict[str, int] | None:
    """Return counts by kind of finding, without those that are 0; none when it is not that."""
    if not isinstance(said, dict) or len(said) > MAX_KINDS:
        return None
    counts = {kind: fields.number(count) for kind, count in said.items() if fields.text(kind)}
    if len(counts) != len(said) or None in counts.values():
        return None
    return {kind: count for kind, count in counts.items() if count}
