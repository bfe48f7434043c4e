"""Finds out what the target is: what each server has, where a pair meets, what a router has behind it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from kvfence.cli.canary import here, known
from kvfence.cli.canary.asked import WrongUsageError
from kvfence.cli.canary.counted import CountedWeb
from kvfence.domain.asking import Fault, Pair
from kvfence.domain.diagnosis.seen import Unreadable
from kvfence.engine.bodies import inspect
from kvfence.verify.canary.people import unanswered
from kvfence.verify.canary.session import BudgetSpentError, Target
from kvfence.verify.overlong import TOKENS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvfence.cli.canary.asked import Asked
    from kvfence.domain.asking import Heard
    from kvfence.domain.diagnosis.seen import RouterSeen, Seen
    from kvfence.engine.web import Web
    from kvfence.verify.canary.session import Budget, Known, Session

ENGINES = 16
"""Behind a router, that are asked what they are. A router may list any addresses."""

GETS = 10
"""That it takes to find out what one engine is, at most."""

SHARE = 2
"""Of the GETs that are left, one in so many at most goes to engines behind a router: RouterPairing needs some."""

SHOWN = 3
"""Engines that a note names."""

MODELS_SECONDS = 10.0

FIRST_SECONDS = 60.0
"""Until the first answer; an engine that nobody used yet compiles for a while."""


class NotToldError(Exception):
    """The target cannot be examined; the message says why and what to do."""


class Open(Protocol):
    """Opens a session to a target that is known by now."""

    def __call__(self, target: Target) -> Session:
        """Return it; all sessions of a run share one budget."""
        ...


@dataclass(frozen=True)
class Ways:
    """How servers are asked."""

    web: Web
    """With the user's key, for the servers that the user named."""
    strangers: Web
    """Without it, for addresses that a router lists."""
    session: Open
    budget: Budget
    """Of the whole run: what is read here counts as well."""

    async def inspect(self, web: Web, url: str) -> tuple[Seen, ...]:
        """Ask a server what it is."""
        return await inspect(web, url, url, CountedWeb(self.budget))


@dataclass(frozen=True, slots=True)
class Found:
    """The target, and what the user should know of how it was found."""

    target: Target
    notes: tuple[str, ...]
    """One sentence each."""


async def discover(asked: Asked, ways: Ways) -> Found:
    """Ask the servers what they are.

    Raises:
        WrongUsageError: the user named something else than what is there.
        NotToldError: it cannot be examined.
    """
    try:
        return await _discover(asked, ways)
    except BudgetSpentError as error:
        raise NotToldError(f"{str(error).capitalize()}: allow more with --max-requests or --max-tokens.") from None


async def _discover(asked: Asked, ways: Ways) -> Found:
    seen = await asyncio.gather(*(ways.inspect(ways.web, url) for url in asked.urls))
    known.refuse_wrong_roles(asked.urls, seen)
    notes = [f"{one.source}: {one.why}" for each in seen for one in each if isinstance(one, Unreadable)]
    router = known.router_of(seen[0])
    names = ["prefill", "decode"] if len(asked.urls) == 2 else ["router" if router else known.name_of(seen[0])]
    legs = tuple(known.known(*leg) for leg in zip(names, asked.urls, seen, strict=True))
    model = asked.model or await _model(asked.urls, seen, ways.web)
    reference = None if asked.reference is None else await _reference(asked.reference, model, ways)
    contacted = () if router is None else _contacted(router, ways.budget)
    engines = await _engines(contacted, ways)
    target = Target(
        asked.name,
        model,
        legs,
        pair=await _pair(asked, seen[0]) if len(legs) == 2 else None,
        is_router=router is not None,
        engines=engines,
        has_more_engines=router is not None and len(engines) < len(router.workers),
        reference=reference,
        may_be_attacked=asked.owned or await _is_local(asked, router),
    )
    if router is not None:
        notes += _left_out(router, contacted, len(engines))
    return Found(await _taking(target, ways.session), tuple(notes))


async def _model(urls: Sequence[str], seen: Sequence[Sequence[Seen]], web: Web) -> str:
    """Return the first model that all of the servers list."""
    lists = [known.models_of(await web.fetch("GET", f"{url}/v1/models", seconds=MODELS_SECONDS)) for url in urls]
    for url, names, each in zip(urls, lists, seen, strict=True):
        if not names:
            why = next((one.why for one in each if isinstance(one, Unreadable)), None)  # no key, nobody there
            raise NotToldError(
                f"{url}/v1/models names no model: see that it answers, or name the model with --model."
                if why is None
                else f"{url}: {why}"
            )
    shared = [name for name in lists[0] if all(name in names for names in lists)]
    if not shared:
        raise NotToldError(
            "Prefill and decode serve models of different names: they are no pair, or --model names one."
        )
    return shared[0]


async def _pair(asked: Asked, prefill: Sequence[Seen]) -> Pair:
    """Return where the legs meet. Where that is not told it is not guessed: the wrong place would look like a fault."""
    url, decode_url = asked.urls
    port = asked.bootstrap_port or known.bootstrap_port(prefill)
    if port is None:
        raise NotToldError(
            f"{url} does not tell its bootstrap port: give it with --bootstrap-port, as prefill was started with "
            "--disaggregation-bootstrap-port (8998 unless it was set)."
        )
    host = asked.bootstrap_host or urlsplit(url).hostname or ""
    if asked.bootstrap_host is None and await here.all_here((url,)) and not await here.all_here((decode_url,)):
        raise WrongUsageError(
            f"prefill is named as {host}, which on decode's machine is another one: give prefill's address as decode "
            "sees it with --bootstrap-host"
        )
    return Pair(url, decode_url, host, port)


def _contacted(router: RouterSeen, budget: Budget) -> tuple[str, ...]:
    """Return the engines behind a router that are asked what they are, as far as the budget goes."""
    urls = [url.rstrip("/") for url in router.workers if urlsplit(url).scheme in ("http", "https")]
    return tuple(urls[: min(ENGINES, budget.reads_left // SHARE // GETS)])


def _left_out(router: RouterSeen, contacted: Sequence[str], told: int) -> list[str]:
    """Return in words which engines were not asked what they are, and how many did not say."""
    count = len(router.workers)
    notes = [] if told == count else [f"{told} of the router's {count} engines said what they are."]
    rest = [url for url in router.workers if url.rstrip("/") not in contacted]
    if rest:
        more = f" and {len(rest) - SHOWN} more" if len(rest) > SHOWN else ""
        notes.append(
            f"Not asked what they are, so that {ENGINES} engines at most are contacted, over HTTP and within "
            f"--max-requests: {', '.join(rest[:SHOWN])}{more}."
        )
    return notes


async def _engines(urls: Sequence[str], ways: Ways) -> tuple[Known, ...]:
    """Return those engines behind a router that say what they are. They get no key: a router can list any address."""
    seen = await asyncio.gather(*(ways.inspect(ways.strangers, url) for url in urls))
    return tuple(
        known.known(known.name_of(each), url, each)
        for url, each in zip(urls, seen, strict=True)
        if not all(isinstance(one, Unreadable) for one in each)
    )


async def _reference(url: str, model: str, ways: Ways) -> Known:
    seen, reply = await asyncio.gather(
        ways.inspect(ways.web, url), ways.web.fetch("GET", f"{url}/v1/models", seconds=MODELS_SECONDS)
    )
    known.refuse_wrong_roles((url,), (seen,))
    names = known.models_of(reply)
    if names and model not in names:
        raise WrongUsageError(
            f"the reference serves {names[0]} and not {model}: it must serve the same weights by this name"
        )
    return known.known("reference", url, seen)


async def _is_local(asked: Asked, router: RouterSeen | None) -> bool:
    """Whether all that hostile requests would reach is this machine. Engines that a router does not name, or by what is
    no address for us, can be anywhere.
    """
    if router is not None and (not router.workers or router.workers_unread):
        return False
    named = asked.urls if asked.reference is None else (*asked.urls, asked.reference)
    return await here.all_here((*named, *(router.workers if router else ())))


async def _taking(target: Target, open_session: Open) -> Target:
    """Ask for one token, with ids and if need be with text, and return what the target takes.

    Raises:
        NotToldError: it answers neither.
    """
    session = open_session(target)
    heard: Sequence[Heard] = ()
    for prompt in (tuple(TOKENS)[:4], "the quick river"):
        heard = await session.ask(prompt, 1, seconds=FIRST_SECONDS)
        if all(one.fault is None for one in heard):
            return replace(target, takes_token_ids=not isinstance(prompt, str))
        if any(one.fault is not Fault.STATUS for one in heard if one.fault is not None):
            break  # it is not the prompt that it minds
    raise NotToldError(
        f"It does not complete a prompt of three words: {unanswered(target, tuple(heard))}. {_cure(heard)}"
    )


def _cure(heard: Sequence[Heard]) -> str:
    statuses = {one.status for one in heard}
    if statuses & {401, 403}:
        return "Give its API key in the environment variable KVFENCE_API_KEY."
    if 404 in statuses:
        return "See that /v1/completions is there and that --model names a model that it serves."
    return "See its log, and that it is up and not closed to users."
