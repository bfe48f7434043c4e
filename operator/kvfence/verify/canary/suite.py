"""All checks of the command line, in the order in which they are run: what does no harm comes first."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from kvfence.verify.canary import (
    abort_reuse,
    fake_transfer,
    health_check_rid,
    marker_isolation,
    overlong_prompt,
    pair_identity,
    prompt_tokens,
    router_pairing,
    salt_isolation,
    stream_errors,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.domain.verdicts import Check
    from kvfence.verify.canary.run import CanaryCheck

_IN_ORDER: tuple[CanaryCheck, ...] = (
    marker_isolation,
    prompt_tokens,
    salt_isolation,
    pair_identity,
    router_pairing,
    stream_errors,
    overlong_prompt,
    abort_reuse,
    health_check_rid,
    fake_transfer,
)

SUITE: Mapping[Check, CanaryCheck] = MappingProxyType({one.NAME: one for one in _IN_ORDER})
"""By name. OverlongPrompt comes late: a leg that hangs holds its pages for minutes, and spoils what is asked next."""
