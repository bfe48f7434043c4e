from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from kvfence.domain.asking import Call, Heard
from kvfence.domain.verdicts import Outcome
from kvfence.verify.canary import salt_isolation
from kvfence.verify.canary.session import Known
from kvfence.verify.canary.stand_in import Flaw, Shape
from tests.unit.verify.canary.spoiled import NO_ANSWERS, Spoil, Spoiled, judged, said

FIELDS = ("cache_salt", "extra_key")


@dataclass
class Cache:
    """Says how much of a prompt is cached: all of it, if it was asked under the same name before."""

    name: Callable[[dict[str, Any]], object]
    seen: set[tuple[object, str]] = field(default_factory=set)

    def __call__(self, call: Call, heard: Heard) -> Heard:
        key = (self.name(dict(call.body)), str(call.body["prompt"]))
        known = key in self.seen
        self.seen.add(key)
        return replace(heard, cached_tokens=64 if known else 0)


@pytest.mark.parametrize("shape", Shape)
@pytest.mark.parametrize("seed", range(8))
def test_a_cache_that_looks_at_no_salt_fails(shape: Shape, seed: int) -> None:
    result = judged(salt_isolation, Spoiled(shape, (Flaw.SALT_IGNORED,)), seed=seed)
    assert result.outcome is Outcome.FAILED
    assert "A prefix cached under one cache_salt was found under another, or under none" in result.message
    assert len(result.evidence) == 7


@pytest.mark.parametrize("shape", Shape)
@pytest.mark.parametrize("seed", range(8))
def test_a_cache_that_keeps_salts_apart_passes(shape: Shape, seed: int) -> None:
    result = judged(salt_isolation, Spoiled(shape), seed=seed)
    assert (result.outcome, result.message) == (
        Outcome.PASSED,
        "What was cached under a salt was found under this one alone.",
    )


@pytest.mark.parametrize("broken", FIELDS)
def test_a_salted_prefix_that_is_found_without_a_salt_fails(broken: str) -> None:
    caches = Cache(lambda body: tuple(body.get(one) for one in FIELDS))

    def spoil(call: Call, heard: Heard) -> Heard:
        plain = not any(one in call.body for one in FIELDS)
        return replace(heard, cached_tokens=64) if plain and broken in last else caches(call, heard)

    last: set[str] = set()

    def watched(call: Call, heard: Heard) -> Heard:
        changed = spoil(call, heard)
        used = {one for one in FIELDS if one in call.body}
        last.clear()
        last.update(used)
        return changed

    result = judged(salt_isolation, Spoiled(Shape.PAIR, spoil=watched))
    assert result.outcome is Outcome.FAILED
    assert f"asked with a {broken}, then without {broken}: 64 tokens of the prompt were cached" in said(result)


def test_an_extra_key_that_two_values_share_fails() -> None:
    def name(body: dict[str, Any]) -> object:
        return body.get("cache_salt"), "extra_key" in body

    result = judged(salt_isolation, Spoiled(Shape.SERVER, spoil=Cache(name)))
    assert result.outcome is Outcome.FAILED
    assert "A prefix cached under one extra_key" in result.message
    assert set(result.evidence) == {
        "asked with a extra_key, then with another extra_key: 64 tokens of the prompt were cached",
        "asked without extra_key, then with a extra_key: 64 tokens of the prompt were cached",
    } or all("extra_key" in line for line in result.evidence)


def test_a_field_that_the_server_does_not_know_is_not_judged_where_the_other_works() -> None:
    result = judged(salt_isolation, Spoiled(Shape.SERVER, spoil=Cache(lambda body: body.get("cache_salt"))))
    assert result.outcome is Outcome.NOT_JUDGED
    assert "cache_salt keeps prefixes apart, and extra_key changes nothing. That is right for vLLM" in result.message


def test_cache_salt_that_is_dropped_fails_where_extra_key_works() -> None:
    result = judged(salt_isolation, Spoiled(Shape.SERVER, spoil=Cache(lambda body: body.get("extra_key"))))
    assert result.outcome is Outcome.FAILED
    assert "sglang-router 0.3.2 drops cache_salt" in result.message


def everywhere(**changes: Any) -> Spoil:
    return lambda _call, heard: replace(heard, **changes)


def test_a_server_that_does_not_report_is_not_judged() -> None:
    result = judged(salt_isolation, Spoiled(Shape.PAIR, spoil=everywhere(cached_tokens=None)))
    assert result.outcome is Outcome.NOT_JUDGED
    assert "--enable-cache-report" in result.message


@pytest.mark.parametrize("shape", Shape)
def test_a_server_that_caches_nothing_is_not_judged(shape: Shape) -> None:
    result = judged(salt_isolation, Spoiled(shape, spoil=everywhere(cached_tokens=0)))
    assert result.outcome is Outcome.NOT_JUDGED
    assert "was not found in the cache" in result.message


def test_a_leg_that_calls_all_of_a_new_prompt_cached_does_not_count() -> None:
    def spoil(call: Call, heard: Heard) -> Heard:
        return replace(heard, cached_tokens=heard.prompt_tokens) if "decode" in call.url else heard

    assert judged(salt_isolation, Spoiled(Shape.PAIR, spoil=spoil)).outcome is Outcome.PASSED
    assert judged(salt_isolation, Spoiled(Shape.PAIR, (Flaw.SALT_IGNORED,), spoil)).outcome is Outcome.FAILED
    assert (
        judged(salt_isolation, Spoiled(Shape.SERVER, spoil=everywhere(cached_tokens=64))).outcome is Outcome.NOT_JUDGED
    )


def test_what_begins_every_prompt_may_be_cached_for_anybody() -> None:
    def spoil(_call: Call, heard: Heard) -> Heard:
        return replace(heard, cached_tokens=max(heard.cached_tokens or 0, salt_isolation.ALLOWED))

    assert judged(salt_isolation, Spoiled(Shape.PAIR, spoil=spoil)).outcome is Outcome.PASSED


def test_behind_a_router_the_same_is_asked_until_most_engines_know_it() -> None:
    turn: list[Call] = []

    def spoil(call: Call, heard: Heard) -> Heard:
        turn.append(call)
        return replace(heard, cached_tokens=0) if len(turn) % 2 else heard  # every other engine caches nothing

    result = judged(salt_isolation, Spoiled(Shape.ROUTER, spoil=spoil))
    assert result.outcome is Outcome.NOT_JUDGED, "a salt that is asked of the wrong engine finds nothing there"


@pytest.mark.parametrize(("words", "heard"), NO_ANSWERS.items())
def test_no_answer_is_not_judged(words: str, heard: Heard) -> None:
    result = judged(salt_isolation, Spoiled(Shape.PAIR, spoil=lambda _call, _heard: heard))
    assert result.outcome is Outcome.NOT_JUDGED
    assert words in result.message
    assert "A request with cache_salt was not answered" in result.message


@pytest.mark.parametrize("seed", range(5))
def test_no_two_prompts_begin_alike(seed: int) -> None:
    for shape in Shape:
        caller = Spoiled(shape)
        judged(salt_isolation, caller, seed=seed)
        starts = {str(call.body["prompt"])[:20] for call in caller.calls}
        assert len(starts) == len({str(call.body["prompt"]) for call in caller.calls}) == 4


def test_no_room_for_a_prompt_is_not_judged() -> None:
    result = judged(salt_isolation, Spoiled(Shape.SERVER), legs=(Known("server", "http://x", context_length=20),))
    assert result.outcome is Outcome.NOT_JUDGED
    assert "There is room for" in result.message


def test_pages_of_one_token_are_enough_to_tell() -> None:
    def exact(call: Call, heard: Heard) -> Heard:
        told = cache(call, heard)
        return replace(told, cached_tokens=len(call.body["prompt"]) - 1 if told.cached_tokens else 0)

    cache = Cache(lambda body: (body.get("cache_salt"), body.get("extra_key")))
    caller = Spoiled(Shape.SERVER, spoil=exact)
    legs = tuple(replace(leg, page_size=1) for leg in caller.target.legs)
    assert judged(salt_isolation, caller, legs=legs).outcome is Outcome.PASSED
