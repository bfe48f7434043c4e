"""StreamErrors: with `stream` a refusal is a 4xx or an error in the stream, never the end of a successful answer.

SGLang has sent the head of the answer, status 200, before its scheduler refuses a prompt; what then comes has to be an
error. A client that sees `finish_reason` stop or length and `[DONE]` takes what it got for an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvfence.domain.asking import Fault
from kvfence.domain.verdicts import Check, Outcome
from kvfence.verify import isolation, judging, markers, overlong
from kvfence.verify.canary import edges, people
from kvfence.verify.canary.people import is_answer, what_came
from kvfence.verify.canary.result import Result, failed, not_judged, passed
from kvfence.verify.judging import REFUSALS, Finding, unanswered, worst

if TYPE_CHECKING:
    from kvfence.domain.asking import Heard
    from kvfence.verify.canary.people import Asked
    from kvfence.verify.canary.session import Session

NAME = Check.STREAM_ERRORS
HOSTILE = False

MALFORMED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("a prompt that is an object", {"prompt": {}}),
    ("max_tokens that is a word", {"max_tokens": "many"}),
    ("max_tokens below 0", {"max_tokens": -5}),
    ("temperature that is a word", {"temperature": "warm"}),
)
"""Requests that no server may take. None of them reaches a model: they do no harm."""

_STREAM = {"stream": True, "stream_options": {"include_usage": True}}
_LARGEST = 600
_CURE = (
    "A client takes this for an answer: do not let streams through here, and see the versions of router and engines."
)


async def check(session: Session) -> Result:
    """Stream what fits, what is too long, and what is malformed.

    Raises:
        BudgetSpentError: when it would cost more than is left.
    """
    size = edges.characters_at_most(session.target, _LARGEST)
    if size < isolation.SMALLEST:
        return not_judged(f"There is room for {max(size, 0)} characters only.")
    if found := await _good(session, size):
        return found
    seen: list[tuple[Asked, Finding | None]] = []
    for what, wrong in MALFORMED:
        asked = await people.ask(session, f"B{len(seen) + 1}", what, "The old castle", 4, **{**_STREAM, **wrong})
        seen.append((asked, judge(asked, overlong.REFUSED_SECONDS)))
    too_long = _too_long(session)
    for length, prompt in too_long:
        seconds = overlong.REFUSED_SECONDS + length / overlong.TOKENIZED_PER_SECOND
        what = f"a prompt of {length} tokens or more"
        asked = await people.ask(session, f"C{len(seen) + 1}", what, prompt, 4, seconds=seconds, **_STREAM)
        seen.append((asked, judge(asked, seconds)))
        if any(heard.fault is Fault.TIMED_OUT for _, heard in asked.legs):
            break  # its pages are held for minutes now
    wrong_end = worst(one for _, one in seen)
    if wrong_end is not None:
        return _result(wrong_end, seen)
    if not too_long:
        return not_judged("What is malformed is refused; what is too long is not known, since no limit is told.")
    return passed(f"{len(seen)} streams that had to be refused ended with a 4xx or an error, good ones with [DONE].")


def _too_long(session: Session) -> list[tuple[int, str | tuple[int, ...]]]:
    """Return prompts that must be refused, with the least number of their tokens: by a scheduler, then a tokenizer."""
    target = session.target
    refused_from = edges.refused_from(target)
    if refused_from is None:
        return []
    lengths = sorted(
        {refused_from, *edges.between_the_limits(target)[:1], *(end + 1 for end in edges.contexts(target))}
    )
    if target.takes_token_ids:
        return [(length, session.ids(length)) for length in lengths if length >= refused_from]
    texts = [refused_from, *edges.contexts(target)[-1:]]
    return [(length, overlong.too_long_text(length, session.chance)) for length in sorted(set(texts))]


async def _good(session: Session, size: int) -> Result | None:
    """See that a good stream ends as it must and says what is said without one. Twice, since answers may differ."""
    (marker,) = markers.draw(1, session.chance)
    prompt = markers.copying_prompt(marker, size, size - len(markers.LEAD))
    what = f"a text of {size} characters that says its marker and asks for it"
    said: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    for attempt in (1, 2):
        plain = await people.ask(session, f"A{2 * attempt - 1}", what, prompt, isolation.ANSWER_TOKENS)
        streamed = await people.ask(session, f"A{2 * attempt}", what, prompt, isolation.ANSWER_TOKENS, **_STREAM)
        if found := unanswered(plain.answers):
            return not_judged(
                f"A good request without a stream was not answered: {found.words}.", people.statuses(plain)
            )
        if found := worst(_judge_good(leg, heard) for leg, heard in streamed.legs):
            return _result(found, [(streamed, found)])
        texts = tuple(heard.text for _, heard in plain.legs), tuple(heard.text for _, heard in streamed.legs)
        if texts[0] == texts[1]:
            return None
        said.append(texts)
    if said[0] == said[1]:
        return failed(f"A stream says something else than the answer without one. {_CURE}", people.statuses(streamed))
    return not_judged("The same question got different answers, so that streams cannot be compared.")


def _judge_good(leg: str, heard: Heard) -> Finding | None:
    if not is_answer(heard):
        return judging.not_judged(f"{leg} {what_came(heard)} to a good request with a stream")
    return None if heard.done else judging.failed(f"{leg} ended a good stream without [DONE]")


def judge(asked: Asked, seconds: float) -> Finding | None:
    """Return what is wrong with the end of streams that had to be refused."""
    return worst(_judge(leg, heard, seconds) for leg, heard in asked.legs)


def _judge(leg: str, heard: Heard, seconds: float) -> Finding | None:
    if heard.fault is Fault.TIMED_OUT:
        return judging.failed(f"{leg} did not end a stream that had to be refused within {seconds:.0f} s")
    if is_answer(heard):
        return judging.failed(f"{leg} ended a stream that had to be refused as a successful answer")
    if heard.fault in (Fault.UNREACHABLE, Fault.TOO_LARGE, Fault.MALFORMED):
        return judging.not_judged(f"{leg} {what_came(heard)}")
    if heard.fault is Fault.STATUS and heard.status not in REFUSALS:
        words = f"{leg} answered {heard.status} to what it had to refuse"
        is_fault = heard.status is not None and heard.status >= 500 and heard.status != 503
        return judging.failed(words) if is_fault else judging.not_judged(words)
    return None


def _result(found: Finding, seen: list[tuple[Asked, Finding | None]]) -> Result:
    wrong = [people.statuses(asked) for asked, one in seen if one is not None]
    first = next(asked for asked, one in seen if one == found)
    words = f"{found.words[0].upper()}{found.words[1:]} ({first.what})."
    if found.outcome is Outcome.FAILED:
        return failed(f"{words} {_CURE}", *wrong)
    return not_judged(words, *wrong)
