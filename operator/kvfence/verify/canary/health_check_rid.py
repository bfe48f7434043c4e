"""HealthCheckRid: a client cannot pass for SGLang's own health check by the name of its request.

SGLang takes `rid` from the body. If it begins with HEALTH_CHECK, prefill computes no checksum for it and decode admits
its KV unverified (0.5.21 to 0.5.23, the releases with a checksum), and an engine that is busy drops it without a word.

From outside one sees whether it is refused and what comes instead, never whether a checksum was verified. So:

- Refused with a 4xx by every leg, where an ordinary question is answered: passed. Each leg of a pair has to refuse for
  itself, since whoever reaches them can send the name to prefill alone, and decode then has no checksum to compare.
- 403 is such a refusal where an ordinary question is answered afterwards, too: alone it might be said to anything.
- Answered with 200 where there is PD: failed. No client has a reason to send such a name, since SGLang's own checks do
  not come over HTTP, so that an engine which takes one takes all and has the checksum off for them. It makes no
  difference that we may ask from the server's own machine: SGLang does not look where a request comes from, and behind
  a router on the same machine all users come from there.
- Answered with 200 by a server without PD: passed, as nothing is transferred that could be verified. By a router of
  whose engines nothing is known, or by an SGLang without a checksum: not judged.
- No answer: not judged; a busy engine drops it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from kvfence.domain.verdicts import Check
from kvfence.verify import markers
from kvfence.verify.canary.edges import characters_at_most
from kvfence.verify.canary.people import (
    is_answer,
    is_refusal,
    leaks,
    named,
    repeats,
    status,
    unanswered,
    what_came,
)
from kvfence.verify.canary.result import Result, failed, no_room, not_judged, passed
from kvfence.verify.judging import FORBIDDEN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvfence.domain.asking import Heard
    from kvfence.verify.canary.session import Session, Target

NAME = Check.HEALTH_CHECK_RID
HOSTILE = True

PREFIX = "HEALTH_CHECK"
"""`HEALTH_CHECK_RID_PREFIX` of SGLang (`constants.py`)."""

CHECKSUM_SINCE = Version("0.5.21")

TRIES = 2
ANSWER_TOKENS = markers.LENGTH + 12
LARGEST = 600
"""Characters of a prompt."""
SMALLEST = 2 * (len(markers.LEAD) + markers.LENGTH)
SECONDS = 20.0
"""Until an answer is there. On a busy engine none ever comes."""

_CURE = (
    "Have the router or a proxy in front overwrite or strip rid, let nobody reach the engines around it, or run "
    "kvfence-engine in them, whose door refuses such names."
)


async def check(session: Session) -> Result:
    """Ask as an ordinary client, then under the name of a health check.

    Raises:
        BudgetSpentError: when it would cost more than is left.
    """
    size = characters_at_most(session.target, LARGEST)
    if size < SMALLEST:
        return no_room(size, SMALLEST)
    drawn = markers.draw(TRIES + 2, session.chance)
    owners = {marker: f"request {number}" for number, marker in enumerate(drawn)}
    heard = await session.ask(markers.copying(drawn[0], size), ANSWER_TOKENS)
    if words := unanswered(session.target, heard):
        return not_judged(f"A request with an ordinary name was not answered: {words}.")
    again, forbidden = markers.copying(drawn[-1], size), False
    taken: list[str] = []
    refused: list[str] = []
    silent: list[str] = []
    for number, own in enumerate(drawn[1:-1], 1):
        rid = f"{PREFIX}_{session.chance.randrange(16**16):016x}"
        heard = await session.ask(
            markers.copying(own, size), ANSWER_TOKENS, seconds=min(SECONDS, session.seconds), rid=rid
        )
        others = {marker: owner for marker, owner in owners.items() if marker != own}
        if lines := leaks(f"request {number}", named(session.target, heard), others):
            return failed(f"The answer to a rid that begins with {PREFIX} has another's marker. {_CURE}", *lines)
        silent += filter(None, [_neither(session.target, heard)])
        taken += [
            f"{name}, request {number}: {status(one)}, {'with' if repeats(one, own) else 'without'} its own marker"
            for name, one in named(session.target, heard)
            if is_answer(one)
        ]
        refused += [f"{name} with {one.status}" for name, one in named(session.target, heard) if _refuses(one)]
        forbidden = forbidden or any(one.status == FORBIDDEN for one in heard)
    if forbidden and (words := unanswered(session.target, await session.ask(again, ANSWER_TOKENS))):
        return not_judged(
            f"It was answered {FORBIDDEN}, and an ordinary request was not answered then either: {words}."
        )
    if taken:
        return _judge_taken(session.target, taken)
    return _judge_silent(silent[0]) if silent else passed(f"Refused by {', '.join(dict.fromkeys(refused))}.")


def _judge_silent(words: str) -> Result:
    return not_judged(
        f"With a rid that begins with {PREFIX}, {words}, which is no refusal. SGLang drops such requests while it is "
        "busy: try again when the server is idle."
    )


def _neither(target: Target, heard: tuple[Heard, ...]) -> str:
    """Return in words which legs neither answered nor refused; empty where one answered: that decides."""
    if any(is_answer(one) for one in heard):
        return ""
    return " and ".join(f"{name} {what_came(one)}" for name, one in named(target, heard) if not _refuses(one))


def _refuses(heard: Heard) -> bool:
    return is_refusal(heard) or heard.status == FORBIDDEN


def _judge_taken(target: Target, taken: list[str]) -> Result:
    engines = target.legs if target.pair is not None else target.engines
    roles = {engine.name for engine in engines}
    if roles == {"server"} or not (target.is_router or target.pair):
        return passed("It is answered like any other; without PD there is no transfer whose checksum it turns off.")
    if not roles:
        return not_judged(
            f"The router lets a rid that begins with {PREFIX} through. Whether that turns a checksum off depends on "
            "its engines, of which nothing is known: ask a pair of them directly.",
            *taken,
        )
    if _all_without_checksum(engine.version for engine in engines):
        return not_judged(
            f"A rid that begins with {PREFIX} is taken. This SGLang has no checksum of the KV that it could turn off; "
            f"from {CHECKSUM_SINCE} on it would.",
            *taken,
        )
    return failed(
        f"A client may name its request {PREFIX}...: the KV checksum, if it is on, is not verified for such requests. "
        + _CURE,
        *taken,
    )


def _all_without_checksum(versions: Iterable[str | None]) -> bool:
    return all(version is not None and _is_without(version) for version in versions)


def _is_without(version: str) -> bool:
    try:
        return Version(version) < CHECKSUM_SINCE
    except InvalidVersion:
        return False
