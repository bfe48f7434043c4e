"""FrontDoor: through the front that users reach there are the two inference paths and the capped list of models, and
nothing else; and the router behind it knows the pool's own engines, and no others.
"""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from kvfence.domain.asking import PASS_FIELD, Fault, Reply
from kvfence.domain.verdicts import Check, Outcome, Verdict
from kvfence.verify.asking import longest_prompt
from kvfence.verify.closed_paths import CLOSED
from kvfence.verify.judging import Finding, failed, not_judged, refusal, worst
from kvfence.verify.overlong import REFUSED_SECONDS, TOKENIZED_PER_SECOND, too_long_text

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 10.0
"""For whatever the front or the router answers by itself."""

COMPLETION_SECONDS = 60.0
"""For a prompt of a few words, through router, prefill and decode."""

AT_ONCE = 8
"""Shut paths that are asked for at the same time."""

NAMED = 3
"""How many of several findings a message names."""

_NOT_THERE = frozenset({404, 405})
_FITTING = "The quick river runs over a lazy hill"
_ANSWER_TOKENS = 4


class Asker(Protocol):
    """Sends requests as they stand, as `kvfence.engine.web.Web` does; raises only when it is cancelled."""

    async def fetch(self, method: str, url: str, body: bytes | None = None, seconds: float | None = None) -> Reply:
        """Return what came of one request."""
        ...


@dataclass(frozen=True)
class Front:
    """One router pod, and what is to be found through it."""

    name: str
    """For people, such as `the front of pod a`."""
    url: str
    """Where users' requests arrive; without a slash at its end."""
    observe_url: str
    """Where the operator may ask for the router's workers."""
    model: str
    """As it is served."""
    cap: int
    """Tokens of context."""
    workers: frozenset[str]
    """URLs of the engines that the router is to know."""


def front_passes_needed() -> int:
    """Return how many passes `prove_front` may use; the doors of all engines must know them."""
    return 1 + len(_FORMS)


async def prove_front(web: Asker, front: Front, passes: Iterator[str]) -> Verdict:
    """Check FrontDoor on a router whose engines are on canary.

    Args:
        web: an open `kvfence.engine.web.Web` with a limit of a minute or more.
        front: what is checked.
        passes: in clear; at least `front_passes_needed`.

    Raises:
        ValueError: when the passes have run out.
    """
    found = await _prove(web, front, passes)
    if found is None:
        return Verdict(Check.FRONT_DOOR, Outcome.PASSED, front.name)
    to_do = (
        "Do not let anyone in: the router's pod is not as it was rendered; compare its image and its ConfigMap."
        if found.outcome is Outcome.FAILED
        else "It is tried again; see the logs of the router's pod."
    )
    return Verdict(Check.FRONT_DOOR, found.outcome, front.name, f"{front.name}: {found.words}. {to_do}")


async def _prove(web: Asker, front: Front, passes: Iterator[str]) -> Finding | None:
    """Return the first thing that is wrong: who would get a prompt is known before one is sent."""
    return (
        await _models(web, front)
        or await _workers(web, front)
        or await _closed(web, front)
        or await _fitting(web, front, passes)
        or await _overlong(web, front, passes)
    )


async def _models(web: Asker, front: Front) -> Finding | None:
    what = "GET /v1/models"
    reply = await web.fetch("GET", f"{front.url}/v1/models", None, SECONDS)
    if reply.fault is not None:
        return not_judged(f"the front {_what_came(reply)} to {what}")
    if reply.status != 200:
        return not_judged(f"the front answered {reply.status} to {what}")
    match _json(reply.body):
        case {"data": [{"id": front.model, "max_model_len": int(length)}]} if not isinstance(length, bool):
            if length == front.cap:
                return None
            return not_judged(f"{what} says that {length} tokens of context are to be had, and {front.cap} are")
    return failed(f"{what} does not list the pool's model, it alone, with its max_model_len")


async def _workers(web: Asker, front: Front) -> Finding | None:
    reply = await web.fetch("GET", f"{front.observe_url}/workers", None, SECONDS)
    if reply.fault is not None:
        return not_judged(f"the router {_what_came(reply)} to GET /workers")
    said = _json(reply.body)
    listed = said.get("workers") if isinstance(said, dict) else None
    if reply.status != 200 or not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        return not_judged(f"the router answered {reply.status} to GET /workers, without a list of them")
    strangers = [one for one in listed if str(one.get("url")) not in front.workers]
    foreign = [one for one in strangers if one.get("status") != "draining" and not _is_from_the_list(one)]
    if foreign:
        return failed(f"the router knows workers that are not the pool's: {_named([_host(one) for one in foreign])}")
    if strangers:
        return not_judged("the router still has workers that were taken from its list")
    missing = front.workers - {str(one.get("url")) for one in listed}
    return not_judged(f"the router does not know {len(missing)} of the pool's engines yet") if missing else None


def _is_from_the_list(worker: dict[str, Any]) -> bool:
    """Whether the router has it from its file, which may lag, and not from somebody who enrolled it (smg 1.13)."""
    labels = worker.get("labels")
    return isinstance(labels, dict) and labels.get("smg.ai/discovery-provider") == "file"


async def _closed(web: Asker, front: Front) -> Finding | None:
    limit = asyncio.Semaphore(AT_ONCE)

    async def ask(method: str, path: str) -> Finding | None:
        async with limit:
            reply = await web.fetch(method, f"{front.url}{path}", b"{}" if method != "GET" else None, SECONDS)
        if reply.status is not None and reply.status not in _NOT_THERE:
            return failed(f"{method} {path} answers {reply.status}")
        return not_judged(f"the front {_what_came(reply)} to {method} {path}") if reply.status is None else None

    found = [one for one in await asyncio.gather(*(ask(*closed) for closed in CLOSED)) if one is not None]
    first = worst(found)
    if first is None or first.outcome is not Outcome.FAILED:
        return first
    open_ = [one.words for one in found if one.outcome is Outcome.FAILED]
    return failed(f"paths that must not be there are: {_named(open_)}")


async def _fitting(web: Asker, front: Front, passes: Iterator[str]) -> Finding | None:
    what = "a prompt that fits"
    reply = await _complete(web, front, _FITTING, _shown(passes), COMPLETION_SECONDS)
    if reply.fault is not None:
        return not_judged(f"the front {_what_came(reply)} to {what}")
    if reply.status != 200:
        return not_judged(f"the front answered {reply.status} to {what}")
    match _json(reply.body):
        case {"choices": [{"text": str()}], "usage": {"prompt_tokens": int(tokens)}} if 0 < tokens < front.cap:
            return None
    return failed(f"{what} got a 200 without a completion and a count of its tokens")


_FORMS: dict[str, dict[str, Any]] = {"plain": {}, "streamed": {"stream": True}}


async def _overlong(web: Asker, front: Front, passes: Iterator[str]) -> Finding | None:
    longest = max(1, longest_prompt(front.cap))
    prompt = too_long_text(longest, random.SystemRandom())
    seconds = REFUSED_SECONDS + longest / TOKENIZED_PER_SECOND
    for form, fields in _FORMS.items():
        reply = await _complete(web, front, prompt, _shown(passes) | fields, seconds)
        if found := refusal("the front", reply, seconds):
            return Finding(
                found.outcome, f"a text of more than {longest} tokens ({form}), which does not fit: {found.words}"
            )
    return None


async def _complete(web: Asker, front: Front, prompt: str, fields: dict[str, Any], seconds: float) -> Reply:
    body = {
        "model": front.model,
        "prompt": prompt,
        "max_tokens": _ANSWER_TOKENS,
        "temperature": 0,
        **fields,
    }
    return await web.fetch("POST", f"{front.url}/v1/completions", json.dumps(body).encode(), seconds)


def _shown(passes: Iterator[str]) -> dict[str, Any]:
    shown = next(passes, None)
    if shown is None:
        raise ValueError("there are fewer passes than questions")
    return {PASS_FIELD: shown}


def _json(raw: bytes) -> object:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _what_came(reply: Reply) -> str:
    match reply.fault:
        case None:
            return f"answered {reply.status}"
        case Fault.TIMED_OUT:
            return "gave no complete answer in time"
        case Fault.UNREACHABLE:
            return "could not be reached, or broke the connection,"
        case _:
            return "gave no usable answer"


def _host(worker: dict[str, Any]) -> str:
    """Return where a worker is, from a URL that anybody may have chosen: no user, no path."""
    try:
        parts = urlsplit(str(worker.get("url")))
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    return f"{host[:100]}:{port}" if host and host.isprintable() else "an address that cannot be read"


def _named(words: list[str]) -> str:
    more = f" and {len(words) - NAMED} more" if len(words) > NAMED else ""
    return ", ".join(words[:NAMED]) + more
