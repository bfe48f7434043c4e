"""SaltIsolation: requests with different salts share no cached prefix.

Whoever can tell that a prefix was cached knows that someone has sent it. `cache_salt` and `extra_key` keep tenants
apart in SGLang's prefix cache (vLLM knows `cache_salt` alone). What was found in the cache is what the server reports:
SGLang does with `--enable-cache-report`, and only the engine that one asks, since a client who sees it has an oracle.

A new prompt is asked twice with a salt: the second time some of it has to be cached, or the report says nothing. Then
it is asked with another salt, and without any: none of it may be cached but the token that begins every prompt. A
second new prompt is asked without a salt first, and then with one.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import TYPE_CHECKING, Any

from kvfence.domain.verdicts import Check
from kvfence.verify import markers
from kvfence.verify.canary.edges import characters_at_most, everyone
from kvfence.verify.canary.people import named, unanswered
from kvfence.verify.canary.result import Result, failed, not_judged, passed
from kvfence.verify.overlong import TOKENS

if TYPE_CHECKING:
    from kvfence.verify.canary.session import Prompt, Session

NAME = Check.SALT_ISOLATION
HOSTILE = False

FIELDS = ("cache_salt", "extra_key")

ALLOWED = 4
"""Tokens that may be cached for anybody: what begins every prompt, and what another prompt may begin with by chance."""

PAGES = 4
"""Of a prompt; whole pages are cached."""
LEAST = 64
"""Tokens of a prompt at least: SGLang's pages have one unless told otherwise, and `ALLOWED` may be found by chance."""
PAGE = 64
"""Tokens, where it is not known. Larger ones are rare, and then the report says nothing."""

WARM = 3
"""Times in a row that some of a prompt must be found through a router: then most of its engines know it."""
LONGEST = 4_096
"""Characters, or ids, of a prompt."""
CHARACTERS = 6
"""Of a text for each token that is wanted: a word of our filler and its space have fewer, and are a token at least."""

AGAIN = 12
"""Times that the same is asked at most until then."""
OTHERS = 3
"""Other salts that are tried."""

_CURE = (
    "Do not rely on salts here to keep tenants apart: see that router and engine both know the field (SGLang does "
    "since 0.5.21; sglang-router 0.3.2 drops cache_salt), or serve tenants from pools of their own. Without a prefix "
    "cache on prefill (--disable-radix-cache) there is nothing to find."
)


class _HiddenError(Exception):
    """Something hides the answer to the question; the message says what, in a full sentence."""


@dataclass
class _Crossings:
    """What was found in the cache under one field for requests that had to find nothing."""

    field: str
    found: list[str] = dataclass_field(default_factory=list)
    """One line for each request that did."""
    tried: int = 0


async def check(session: Session) -> Result:
    """Ask the same with the same salt, another one and none, for both fields.

    Raises:
        BudgetSpentError: when it would cost more than is left.
    """
    try:
        salt, key = [await _cross(session, field) for field in FIELDS]
    except _HiddenError as hidden:
        return not_judged(str(hidden))
    if salt.found:
        return _crossed(salt)
    if len(key.found) == key.tried:
        return not_judged(
            f"{salt.field} keeps prefixes apart, and {key.field} changes nothing. That is right for vLLM, which does "
            f"not know {key.field}; with SGLang something on the way drops it. Use {salt.field}.",
            *key.found,
        )
    if key.found:
        return _crossed(key)
    return passed("What was cached under a salt was found under this one alone.")


def _crossed(seen: _Crossings) -> Result:
    return failed(
        f"A prefix cached under one {seen.field} was found under another, or under none. {_CURE}", *seen.found
    )


async def _cross(session: Session, field: str) -> _Crossings:
    """Ask with one field: what is cached with a salt must not be found with others or without, nor the reverse."""
    seen = _Crossings(field)
    for kept, others in (({field: _salt(session)}, [*_others(session, field), {}]), ({}, _others(session, field))):
        prompt = _new_prompt(session)
        found_again = await _warm(session, prompt, kept)
        for fields in others:
            cached = await _cached(session, prompt, fields)
            seen.tried += 1
            most = max((cached[leg] for leg in found_again), default=0)
            if most > ALLOWED:
                asked = f"{_said(field, kept)}, then {_said(field, fields, kept)}"
                seen.found.append(f"asked {asked}: {most} tokens of the prompt were cached")
    return seen


async def _warm(session: Session, prompt: Prompt, fields: dict[str, Any]) -> tuple[str, ...]:
    """Ask the same until some of it is found in the cache; return the legs whose report says so.

    Raises:
        _HiddenError: when none does.
    """
    first = await _cached(session, prompt, fields)
    telling = tuple(leg for leg, count in first.items() if count <= ALLOWED)
    needed = WARM if session.target.is_router else 1
    in_a_row = 0
    for _ in range(AGAIN if session.target.is_router else 2):
        cached = await _cached(session, prompt, fields)
        found = tuple(leg for leg in telling if cached.get(leg, 0) > ALLOWED)
        in_a_row = in_a_row + 1 if found else 0
        if in_a_row == needed:
            return found
    raise _HiddenError(
        "A prompt that was asked again with the same salt was not found in the cache, so that nothing can be said of "
        "another salt: the prefix cache is off, a router sends the same prompt to other engines, or the prompt is "
        "shorter than a page."
    )


async def _cached(session: Session, prompt: Prompt, fields: dict[str, Any]) -> dict[str, int]:
    """Return how many tokens of a prompt were found in the cache, for each leg that tells.

    Raises:
        _HiddenError: when it was not answered, or no leg tells.
    """
    heard = await session.ask(prompt, 1, **fields)
    if words := unanswered(session.target, heard):
        raise _HiddenError(f"A request with {' and '.join(fields) or 'no salt'} was not answered: {words}.")
    told = {name: one.cached_tokens for name, one in named(session.target, heard) if one.cached_tokens is not None}
    if not told:
        raise _HiddenError(
            "The server does not say how much of a prompt was cached (usage.prompt_tokens_details). Start SGLang with "
            "--enable-cache-report for this check alone: clients who see it can tell what others have asked."
        )
    return told


def _new_prompt(session: Session) -> Prompt:
    """Return a prompt of some pages that begins like none before."""
    target = session.target
    sizes = [leg.page_size for leg in everyone(target) if leg.page_size is not None]
    tokens = max(PAGES * max(sizes, default=PAGE), LEAST) + 1
    most = characters_at_most(target, LONGEST)
    if most < PAGES:
        raise _HiddenError(f"There is room for {max(most, 0)} tokens only.")
    if target.takes_token_ids:
        return tuple(session.chance.choices(TOKENS, k=min(tokens, most)))
    (opening,) = markers.draw(1, session.chance)
    return (opening + " " + markers.filler(CHARACTERS * tokens))[:most]


def _others(session: Session, field: str) -> list[dict[str, Any]]:
    return [{field: _salt(session)} for _ in range(OTHERS)]


def _salt(session: Session) -> str:
    return f"kvfence-{session.chance.randrange(16**16):016x}"


def _said(field: str, fields: dict[str, Any], kept: dict[str, Any] | None = None) -> str:
    """Return in words which salt a request had."""
    if not fields:
        return f"without {field}"
    return f"with a {field}" if not kept else f"with another {field}"
