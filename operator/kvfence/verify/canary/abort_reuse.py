"""AbortReuse: who gets the pages of an aborted request does not get its words, and the server goes on answering.

Clients that hang up in the middle of prefill or of a transfer are everyday. Where decode frees the pages of such a
request while prefill still writes into them, what is written ends up in the KV of whoever has the pages next (SGLang's
issue 24527; releases before 0.5.21 free them at once unless told otherwise).

Requests with markers fill the pool, as far as that costs little, and are left at several moments. At once others
come: one that asks for a marker without having one, one with a marker of its own, and one made of ids of tokens, whose
count is known. On a pair also one leg alone is left, which is how the two come to disagree about whose pages they are.

Hostile, though hanging up is nobody's fault: on a server with this fault it is other users' KV that is written over.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kvfence.domain.verdicts import Check
from kvfence.verify import markers
from kvfence.verify.canary.edges import characters_at_most, everyone
from kvfence.verify.canary.people import leaks, named, repeats, unanswered
from kvfence.verify.canary.result import Result, failed, no_room, not_judged, passed
from kvfence.verify.judging import UNAVAILABLE
from kvfence.verify.overlong import TOKENS

if TYPE_CHECKING:
    from kvfence.domain.asking import Heard
    from kvfence.verify.canary.session import Prompt, Session

NAME = Check.ABORT_REUSE
HOSTILE = True

MOMENTS = {"all": (0.3, 0.8, 1.6), "decode": (0.5, 1.2), "prefill": (0.8,)}
"""Which legs we leave, and after which part of the time that one request alone takes: several take longer."""
FULL = 0.9
"""Part of the largest pool that requests hold before we leave them, so that who comes next has to take their pages."""
AT_LEAST = 2
"""Requests that we leave at a time. Of those that we leave on one leg, no more: what the other holds until it notices
is not there for those that come next."""
AT_MOST = 12
"""Requests that we leave at a time, each with a marker of its own."""
SHARE = 4
"""A prompt is at most this part of the smallest pool: those that come next have to fit into it together."""
LARGEST = 4_000
"""Characters of a prompt."""
SMALLEST = 4 * (len(markers.LEAD) + markers.LENGTH)
FOLLOWING = 3
"""Questions at most that come at once then."""
OPENING = 6
"""Words that begin a question, drawn anew: else the prefix cache would answer it from pages that are in order."""
ANSWER_TOKENS = markers.LENGTH + 12
ENDINGS = 3
"""Ordinary questions at the end, of which one has to be answered."""

_CURE = (
    "Use SGLang 0.5.23 on both roles and leave SGLANG_DISAGGREGATION_DEFERRED_DECODE_KV_RELEASE on, with a time-out no "
    "shorter than the transfer backend's; see the logs of all engines for the time of this check."
)


@dataclass
class _Seen:
    """What one run of the check has seen."""

    session: Session
    size: int
    """Characters of a prompt."""
    owners: dict[str, str] = field(default_factory=dict)
    """All markers so far, and what the requests were that had them."""
    counts: dict[str, int] = field(default_factory=dict)
    """Of questions in text, what the answering leg counted."""
    at_once: int = AT_LEAST
    """Requests that are left at a time."""
    left: int = 0
    """Requests that were still running when we hung up."""
    asked: int = 0
    """Questions afterwards."""
    missing: list[str] = field(default_factory=list)
    """Of those, in words, which were not answered."""

    def others(self, own: str | None = None) -> dict[str, str]:
        return {marker: owner for marker, owner in self.owners.items() if marker != own}

    def draw(self, owner: str) -> str:
        """Return a new marker that shares no run with an earlier one."""
        while True:
            (marker,) = markers.draw(1, self.session.chance)
            if not markers.found(marker, self.owners):
                self.owners[marker] = owner
                return marker


async def check(session: Session) -> Result:
    """Leave requests at several moments, ask others at once, and see that the server goes on.

    Raises:
        BudgetSpentError: when it would cost more than is left.
    """
    pools = [one.kv_pool_tokens for one in everyone(session.target) if one.kv_pool_tokens is not None]
    size = characters_at_most(session.target, min([LARGEST, *(pool // SHARE for pool in pools)]))
    if size < SMALLEST:
        return no_room(size, SMALLEST)
    seen = _Seen(session, size)
    own = seen.draw("the first request")
    heard = await session.ask(markers.copying(own, size), ANSWER_TOKENS)
    if words := unanswered(session.target, heard):
        return not_judged(f"A request that nobody left was not answered: {words}.")
    if not repeats(heard[-1], own):
        return not_judged("The model did not repeat a text that stands in its own prompt: it would repeat no other's.")
    seen.at_once = min(AT_MOST, max(AT_LEAST, int(FULL * max(pools, default=0) / size)))
    takes = max(one.seconds for one in heard)
    for who, parts in MOMENTS.items() if session.target.pair is not None else [("all", MOMENTS["all"])]:
        for part in parts:
            if found := await _round(seen, who, takes * part):
                return found
    return await _end(seen) or _conclude(seen, max(pools, default=0))


async def _round(seen: _Seen, who: str, seconds: float) -> Result | None:
    """Leave all legs or one of them, and ask others at once. The leg that was not left then is left afterwards."""
    session = seen.session
    count = seen.at_once if who == "all" else AT_LEAST
    await session.budget.ready(count + FOLLOWING)
    leaving: list[asyncio.Task[Heard]] = []
    staying: list[asyncio.Task[Heard]] = []
    when = f"left {'' if who == 'all' else f'on {who} alone '}after {seconds:.3f} s"
    leaves = {leg.name: seconds for leg in session.target.legs if who in ("all", leg.name)}
    try:
        for number in range(1, count + 1):
            prompt = markers.planting_prompt(seen.draw(f"request {number}, {when},"), seen.size)
            for leg, answer in await session.ask_apart(prompt, ANSWER_TOKENS, hang_up_after=leaves):
                (leaving if leg.name in leaves else staying).append(asyncio.create_task(answer))
        seen.left += sum(one.hung_up for one in await asyncio.gather(*leaving))
        found = await _reuse(seen, f"asked when others were {when}")
    finally:
        for task in (*leaving, *staying):
            task.cancel()
        ended = await asyncio.gather(*leaving, *staying, return_exceptions=True)
    for one in ended:
        if isinstance(one, Exception):
            raise one
    return found


async def _reuse(seen: _Seen, when: str) -> Result | None:
    """Ask those who get the pages next, all at once; return what is wrong."""
    own = seen.draw(f"the question with a marker, {when}")
    opening = " ".join(seen.session.chance.choices(markers.WORDS, k=OPENING)) + " "
    asking = opening + markers.asking_prompt(seen.size - len(opening), begin_tokens=0)
    prompts: list[tuple[str, Prompt, str | None]] = [
        ("a question without a marker", asking, None),
        ("a question with a marker of its own", markers.copying(own, seen.size), own),
    ]
    if seen.session.target.takes_token_ids:
        ids = tuple(seen.session.chance.choices(TOKENS, k=seen.size // 2))
        prompts.append((f"a prompt of {len(ids)} ids of tokens", ids, None))
    answers = await asyncio.gather(*(seen.session.ask(prompt, ANSWER_TOKENS) for _, prompt, _ in prompts))
    for (asked, prompt, marker), heard in zip(prompts, answers, strict=True):
        if found := _judge(seen, f"{asked}, {when}", prompt, heard, marker):
            return found
    return None


def _judge(seen: _Seen, asked: str, prompt: Prompt, heard: tuple[Heard, ...], own: str | None) -> Result | None:
    target = seen.session.target
    if lines := leaks(asked, named(target, heard), seen.others(own)):
        return failed(f"A request got the words of one that its client had left. {_CURE}", *lines)
    counts = {name: one.prompt_tokens for name, one in named(target, heard) if one.prompt_tokens is not None}
    right = len(prompt) if isinstance(prompt, tuple) else seen.counts.get(prompt)
    wrong = any(count != right for count in counts.values()) if right is not None else len(set(counts.values())) > 1
    if wrong:
        told = " and ".join(f"{name} counted {count} tokens" for name, count in counts.items())
        known = f" where {right} are right" if right is not None else " of the same prompt"
        return failed(f"After clients had hung up, {told}{known}: answers are made of another prompt. {_CURE}", asked)
    seen.asked += 1
    if words := unanswered(target, heard):
        seen.missing.append(f"{asked}: {words}")
    elif isinstance(prompt, str) and heard[-1].prompt_tokens is not None:
        seen.counts[prompt] = heard[-1].prompt_tokens
    return None


async def _end(seen: _Seen) -> Result | None:
    """Ask as at the beginning, and an earlier question again: its count must be the same."""
    session = seen.session
    for prompt in tuple(seen.counts)[:1]:
        heard = await session.ask(prompt, ANSWER_TOKENS)
        if found := _judge(seen, "an earlier question again", prompt, heard, _own(seen, prompt)):
            return found
    for number in range(1, ENDINGS + 1):
        own = seen.draw(f"question {number} at the end")
        heard = await session.ask(markers.copying(own, seen.size), ANSWER_TOKENS)
        if lines := leaks(f"question {number} at the end", named(session.target, heard), seen.others(own)):
            return failed(f"A request got the words of one that its client had left. {_CURE}", *lines)
        words = unanswered(session.target, heard)
        if not words:
            return None
        if any(one.status in UNAVAILABLE for one in heard):
            return not_judged(f"At the end an ordinary question was not answered: {words}. Try again with less load.")
    return failed(
        f"An ordinary question was answered before clients hung up, and none of {ENDINGS} afterwards: {words}. {_CURE}"
    )


def _conclude(seen: _Seen, pool: int) -> Result:
    if not seen.left:
        return not_judged("All requests were answered before we could hang up: the server is too fast for their size.")
    if seen.missing:
        return not_judged(
            f"{len(seen.missing)} of {seen.asked} questions that followed requests that were left got no answer, so "
            "that nothing can be said of their pages; the server answers again. See its log.",
            *seen.missing,
        )
    held = (
        f", {seen.at_once} at a time with {min(1.0, seen.at_once * seen.size / pool):.0%} of the largest pool"
        if pool
        else ""
    )
    return passed(f"{seen.left} requests were left while they ran{held}, and {seen.asked} questions followed.")


def _own(seen: _Seen, prompt: str) -> str | None:
    return next((marker for marker in seen.owners if marker in prompt), None)
