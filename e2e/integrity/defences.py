"""What stands against the attacks, each alone and all together, and which of them each stops. Pure."""

from __future__ import annotations

from e2e.integrity.attacks import ATTACKS
from e2e.integrity.scene import Defence

_CUT_OFF = ("stub", "auto-truncate", "tokens-fewer")
"""Prefill computed less than decode made room for."""

UNSEEN = "flip-before-proof"
"""Bytes that were changed on prefill before anything was told of them are what prefill had."""

TAGGING = Defence("page tagging alone", ("--page-tagging", "Enforce"))
SCRUBBING = Defence("page scrubbing alone", ("--page-scrubbing", "Enforce"))
COVERAGE = Defence("coverage alone", ("--coverage", "Enforce"))
CHECKSUM = Defence("SGLang's checksum alone", sglang=("--disaggregation-enable-kv-checksum",))
ALL = Defence("all defences", (*TAGGING.launcher, *SCRUBBING.launcher, *COVERAGE.launcher), CHECKSUM.sglang)

STOPS: dict[Defence, tuple[str, ...]] = {
    TAGGING: (*_CUT_OFF, "fake-host", "stale-table", "swap-table", "foreign-prefix", "other-metadata", "double-page"),
    SCRUBBING: (
        *(*_CUT_OFF, "tokens-more", "fake-host", "lost-page", "stale-table", "swap-table", "late-write"),
        *("foreign-bytes", "flip-arrived", "flip-before-send"),
    ),
    COVERAGE: (*_CUT_OFF, "tokens-more", "tokens-differ", "fake-host", "other-metadata"),
    CHECKSUM: (
        *(*_CUT_OFF, "tokens-more", "lost-page", "stale-table", "swap-table", "other-metadata", "foreign-bytes"),
        *("flip-arrived", "flip-before-send"),
    ),
    ALL: tuple(attack.name for attack in ATTACKS if attack.name != UNSEEN),
}
"""By defence, the names of attacks that come to nothing when it is on."""

OPEN = {"prefill": "open", "decode": "open"}
_BOTH = {"prefill": "tainted", "decode": "tainted"}
CLOSES: dict[Defence, dict[str, dict[str, str]]] = {TAGGING: {"swap-table": _BOTH}, ALL: {"swap-table": _BOTH}}
"""By defence and attack, the doors after it, where it closes any although the fuse is told to bear what is contained:
after `swap-table` a request that ran already may have read what is not its own.
"""
