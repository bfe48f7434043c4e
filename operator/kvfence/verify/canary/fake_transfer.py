"""FakeTransfer: nobody gets an answer out of KV that never arrived, by naming SGLang's fake bootstrap host.

`bootstrap_host` 2.2.2.2 tells a decode engine that a transfer which never happens is complete. SGLang means it for its
own health checks, takes it from any client in all releases up to 0.5.23, and decode then goes on from what its pages
held before: from what others wrote.

What passes depends on what is asked:

- A pair: decode gets the request alone, as whoever reaches it can send it, and has to refuse it. Status 200 is a
  failure whether or not a marker came out: prefill was not asked, so nothing in that answer is of this request. (If it
  repeats its own request's marker all the same, whoever answers computed the prompt itself, and that is no leak.) 5xx
  is no answer either and passes, as long as the pair still answers ordinary questions.
- A router: it has to overwrite the field, so that the right answer is an ordinary one, with the request's own marker;
  or to refuse. 200 without it, while an ordinary question is answered right, is a failure.
- A server without PD: it has no use for the field; as for the router.

A refusal counts only if the same server answered the same kind of question without the field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.domain.asking import ROOMS
from kvfence.domain.verdicts import Check, Outcome
from kvfence.verify import markers
from kvfence.verify.canary import planting
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
from kvfence.verify.judging import FORBIDDEN, MUTE, UNAVAILABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvfence.domain.asking import Heard
    from kvfence.verify.canary.session import Session

NAME = Check.FAKE_TRANSFER
HOSTILE = True

FAKE_HOST = "2.2.2.2"
"""`FAKE_BOOTSTRAP_HOST` of SGLang (`disaggregation/utils.py`)."""

FAKE_PORT = 8998
"""Nobody connects to it."""

TRIES = 3
"""Behind a router each may meet other engines."""

ANSWER_TOKENS = markers.LENGTH + 12
LARGEST = 2_000
"""Characters of a prompt."""
SMALLEST = 4 * (len(markers.LEAD) + markers.LENGTH)
SECONDS = 30.0
"""Until an answer is there. A transfer that never happens takes no time."""

_CURE_ENGINES = (
    "Let nobody but a router that overwrites bootstrap_host reach the engines (a network policy, or a port on loopback "
    "alone), or run kvfence-engine in them, whose door refuses it."
)
_CURE_ROUTER = (
    "Use a router that overwrites bootstrap_host (smg and sglang-router do so in PD mode), and see that nobody can "
    "reach the engines around it."
)


async def check(session: Session) -> Result:
    """Plant markers, then ask with the fake host.

    Raises:
        BudgetSpentError: when it would cost more than is left.
    """
    size = characters_at_most(session.target, LARGEST)
    if size < SMALLEST:
        return no_room(size, SMALLEST)
    planted = await planting.plant(session)
    if isinstance(planted, Result):
        return await _decode_alone(session, size) or planted
    if found := await _ordinary(session, size, planted):
        return found
    notes = []
    for number in range(1, TRIES + 1):
        judged = await _attack(session, size, planted, number)
        if isinstance(judged, Result):
            return judged
        notes.append(judged)
    return passed(f"{FAKE_HOST}: " + "; ".join(dict.fromkeys(notes)) + ".")


async def _decode_alone(session: Session, size: int) -> Result | None:
    """Ask a server that does not answer ordinary questions: decode without its prefill, if it answers this one."""
    if session.target.pair is not None or session.target.is_router:
        return None
    judged = await _attack(session, size, {}, 1)
    return judged if isinstance(judged, Result) and judged.outcome is Outcome.FAILED else None


async def _ordinary(session: Session, size: int, planted: Mapping[str, str]) -> Result | None:
    """Ask without the field; none when the answer is right."""
    (own,) = markers.draw(1, session.chance)
    heard = await session.ask(markers.copying(own, size), ANSWER_TOKENS)
    if lines := leaks("an ordinary question", named(session.target, heard), _users(planted)):
        return failed("Even an ordinary question was answered with another's marker: see MarkerIsolation.", *lines)
    if words := unanswered(session.target, heard):
        return not_judged(f"A request without the field was not answered: {words}.")
    if not repeats(heard[-1], own):
        return not_judged(f"The model {MUTE}; see that its weights, data type and tokenizer are right.")
    return None


async def _attack(session: Session, size: int, planted: Mapping[str, str], number: int) -> Result | str:
    """Ask the leg that answers with the fake host; return in words how it went well, or what is wrong."""
    (own,) = markers.draw(1, session.chance)
    leg = session.target.legs[-1]
    heard = await session.ask_only(
        leg,
        markers.copying(own, size),
        ANSWER_TOKENS,
        seconds=min(SECONDS, session.seconds),
        bootstrap_host=FAKE_HOST,
        bootstrap_port=FAKE_PORT,
        bootstrap_room=session.chance.randrange(ROOMS),
    )
    if lines := leaks(f"try {number} with {FAKE_HOST}", [(leg.name, heard)], _users(planted)):
        return failed(
            f"{leg.name} answered out of the KV of other requests to bootstrap_host {FAKE_HOST}. {_cure(session)}",
            *lines,
        )
    if is_answer(heard) and repeats(heard, own):
        return "the field changed nothing, the answer was this request's own"
    if is_answer(heard):
        return await _wrong_answer(session, size, planted, f"{leg.name}, try {number}", heard)
    if is_refusal(heard):
        return f"{leg.name} refused it with {heard.status}"
    return await _neither(session, size, planted, heard)


async def _neither(session: Session, size: int, planted: Mapping[str, str], heard: Heard) -> Result | str:
    """Judge what is neither an answer nor a refusal: an error is one more way not to answer, if the server goes on.

    So is 403, which alone might be said to anything of ours (see `judging.REFUSALS`).
    """
    name = session.target.legs[-1].name
    forbidden = heard.status == FORBIDDEN
    if heard.status is None or (heard.status < 500 and not forbidden) or heard.status in UNAVAILABLE:
        return not_judged(f"With bootstrap_host {FAKE_HOST} {name} {what_came(heard)}, which is no refusal.")
    if await _ordinary(session, size, planted) is None:
        return f"{name} answered {heard.status}, and goes on serving"
    return not_judged(
        f"With bootstrap_host {FAKE_HOST} {name} {what_came(heard)}, and an ordinary question afterwards was not "
        "answered as before; see its log."
    )


async def _wrong_answer(session: Session, size: int, planted: Mapping[str, str], asked: str, heard: Heard) -> Result:
    """Judge an answer that is not this request's, without a marker in it. Nothing planted: a decode engine alone."""
    line = f"{asked}: {status(heard)}, {len(heard.text)} characters, neither its own marker nor one that we planted"
    name = session.target.legs[-1].name
    if not planted and heard.completion_tokens == 1:
        return not_judged(f"{name} gives one token only, as prefill does: that one is of the prompt's own KV.", line)
    if session.target.pair is not None or not planted:
        return failed(
            f"{name} answered 200 to bootstrap_host {FAKE_HOST}, out of pages to which nothing was transferred: what "
            f"others left there comes out, even if none of our markers did this time. {_CURE_ENGINES}",
            line,
        )
    if await _ordinary(session, size, planted) is None:
        return failed(
            f"{name} answers ordinary questions right, and one with bootstrap_host {FAKE_HOST} wrong: the field gets "
            f"through to a decode engine. {_CURE_ROUTER}",
            line,
        )
    return not_judged(f"{name} answered wrong with bootstrap_host {FAKE_HOST}, and then without it too.", line)


def _users(planted: Mapping[str, str]) -> dict[str, str]:
    return {marker: f"user {user}" for marker, user in planted.items()}


def _cure(session: Session) -> str:
    return _CURE_ROUTER if session.target.is_router else _CURE_ENGINES
