"""What is shown: a scene for each thing that people start by hand, and which are up at the same time. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from e2e.by_hand import cast
from e2e.by_hand.cast import CONTEXT, OLD, SMALL_POOL
from e2e.by_hand.routers import Router
from e2e.engines.environment import VERSION
from kvfence.domain.verdicts import Check

if TYPE_CHECKING:
    from e2e.engines.servers import Server


@dataclass(frozen=True)
class Scene:
    """One target of the commands."""

    name: str
    title: str
    """For the table of verdicts."""
    engines: tuple[Server, ...]
    """A server, a pair in the order prefill and decode, or all that a router has behind it."""
    router: Router | None = None
    key: str = ""
    """That the user gives."""
    compared: bool = False
    """With the server alone, which has the same weights."""
    checks: tuple[Check, ...] = ()
    """Of the canary, that tests run: where this scene differs from others. `python -m e2e.by_hand` runs all."""


@dataclass(frozen=True)
class Group:
    """Servers that are up together, and the scenes that need no others."""

    servers: tuple[Server, ...]
    scenes: tuple[Scene, ...]
    doors: bool = False
    """Behind the door of kvfence-engine, which is open, with the cap that fits both."""


OF_A_PAIR = (
    Check.MARKER_ISOLATION,
    Check.PROMPT_TOKENS,
    Check.PAIR_IDENTITY,
    Check.STREAM_ERRORS,
    Check.OVERLONG_PROMPT,
    Check.HEALTH_CHECK_RID,
    Check.FAKE_TRANSFER,
)

OLD_PAIR = Scene(
    "old-pair",
    f"{OLD}, prefill and decode: prefill's pool holds {SMALL_POOL:,} of {CONTEXT:,} tokens",
    (cast.OLD_PREFILL, cast.OLD_DECODE),
    compared=True,
    checks=(Check.STREAM_ERRORS, Check.OVERLONG_PROMPT),
)
ALONE = Scene(
    "alone",
    f"{VERSION} alone: its pool holds the context",
    (cast.ALONE,),
    checks=(Check.MARKER_ISOLATION, Check.STREAM_ERRORS, Check.OVERLONG_PROMPT, Check.HEALTH_CHECK_RID),
)
ALONE_SHORT = Scene(
    "alone-short",
    f"{VERSION} alone, with a key and `--enable-cache-report`: its pool holds {SMALL_POOL:,} of {CONTEXT:,} tokens",
    (cast.ALONE_SHORT,),
    key=cast.KEY,
    checks=(Check.PROMPT_TOKENS, Check.SALT_ISOLATION, Check.OVERLONG_PROMPT),
)
WITHOUT_THE_KEY = Scene("without-the-key", "the same, and the key is not given", (cast.ALONE_SHORT,))
APART_PAIR = Scene(
    "apart-pair",
    f"{VERSION}, prefill and decode: prefill's pool holds {SMALL_POOL:,} of {CONTEXT:,} tokens",
    (cast.APART_PREFILL, cast.APART_DECODE),
    compared=True,
    checks=(Check.STREAM_ERRORS, Check.OVERLONG_PROMPT),
)
TRUNCATING_PAIR = Scene(
    "truncating-pair",
    "the same, with `--allow-auto-truncate` on prefill",
    (cast.TRUNCATING_PREFILL, cast.APART_DECODE),
    compared=True,
    checks=(Check.STREAM_ERRORS, Check.OVERLONG_PROMPT),
)
SGLANG_ROUTER = Scene(
    "sglang-router",
    "the pair without that flag, behind sglang-router 0.3.2",
    (cast.APART_PREFILL, cast.APART_DECODE),
    router=Router.SGLANG_ROUTER,
    checks=(Check.ROUTER_PAIRING, Check.OVERLONG_PROMPT, Check.FAKE_TRANSFER),
)
CAPPED_PAIR = Scene(
    "capped-pair",
    f"{VERSION}, prefill and decode: both offer {SMALL_POOL:,} tokens, which prefill's pool holds",
    (cast.CAPPED_PREFILL, cast.CAPPED_DECODE),
    compared=True,
    checks=OF_A_PAIR,
)
SMG = Scene(
    "smg",
    "two prefill and two decode of that kind, behind smg 1.13.0 without keys",
    (cast.CAPPED_PREFILL, cast.SECOND_PREFILL, cast.CAPPED_DECODE, cast.SECOND_DECODE),
    router=Router.SMG,
    checks=(Check.ROUTER_PAIRING, Check.OVERLONG_PROMPT, Check.HEALTH_CHECK_RID),
)
DOOR_PAIR = Scene(
    "door-pair",
    f"{VERSION} with kvfence-engine: prefill's pool holds {SMALL_POOL:,} of {CONTEXT:,} tokens, and the cap fits it",
    (cast.DOOR_PREFILL, cast.DOOR_DECODE),
    compared=True,
    checks=OF_A_PAIR,
)

GROUPS = (
    Group((cast.OLD_PREFILL, cast.OLD_DECODE), (OLD_PAIR, ALONE, ALONE_SHORT, WITHOUT_THE_KEY)),
    Group(
        (cast.APART_PREFILL, cast.TRUNCATING_PREFILL, cast.APART_DECODE),
        (APART_PAIR, TRUNCATING_PAIR, SGLANG_ROUTER),
    ),
    Group((cast.CAPPED_PREFILL, cast.SECOND_PREFILL, cast.CAPPED_DECODE, cast.SECOND_DECODE), (CAPPED_PAIR, SMG)),
    Group((cast.DOOR_PREFILL, cast.DOOR_DECODE), (DOOR_PAIR,), doors=True),
)
THROUGHOUT = (cast.ALONE, cast.ALONE_SHORT)
"""Up during all groups: what pairs are compared with."""

SCENES = tuple(scene for group in GROUPS for scene in group.scenes)
