"""Engines or ranks of one role with pools apart: what some of them hold may be answered or refused, and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kvfence.cli.canary.known import known
from kvfence.domain.asking import Call, Fault, Heard
from kvfence.domain.diagnosis.seen import EngineSeen
from kvfence.domain.verdicts import Outcome
from kvfence.verify.canary import edges, overlong_prompt, stream_errors
from kvfence.verify.canary.session import Known, Target
from kvfence.verify.canary.stand_in import Shape
from tests.unit.verify.canary.spoiled import TIMED_OUT, Spoiled, judged, status

SMALL, LARGE = 1018, 2994
CONTEXT = 4096


def rank(role: str, limit: int) -> Known:
    return Known(role, f"http://{role}", limit + 6, CONTEXT, limit, 16)


ROUTER: dict[str, Any] = {
    "legs": (Known("router", "http://server.example"),),
    "engines": (rank("server", SMALL), replace(rank("server", LARGE), url="http://other")),
    "is_router": True,
}
RANKS: dict[str, Any] = {
    "legs": (
        known(
            "server",
            "http://server.example",
            [
                EngineSeen("s", number, kv_pool_tokens=limit + 6, context_length=CONTEXT, told_input_limit=limit)
                for number, limit in enumerate((SMALL, LARGE))
            ],
        ),
    )
}


def tokens(call: Call) -> int:
    prompt = call.body["prompt"]
    return len(prompt) + isinstance(prompt, str)


@pytest.mark.parametrize("between", [Heard(200, "right", finish_reason="length"), status(400)], ids=["200", "400"])
@pytest.mark.parametrize("changes", [RANKS, ROUTER], ids=["ranks of a server", "servers behind a router"])
@pytest.mark.parametrize("check", [overlong_prompt, stream_errors])
def test_what_some_hold_may_be_answered_with_the_right_count_or_refused(
    check: object, changes: dict[str, Any], between: Heard
) -> None:
    def spoil(call: Call, was: Heard) -> Heard:
        if not SMALL <= tokens(call) < LARGE:
            return was
        return replace(between, prompt_tokens=tokens(call)) if between.status == 200 else between

    result = judged(check, Spoiled(Shape.SERVER, spoil=spoil), **changes)
    assert result.outcome is Outcome.PASSED, result


@pytest.mark.parametrize(
    ("between", "words"),
    [(TIMED_OUT, "did not refuse within 5 s"), (Heard(200, "x"), "counted 7 tokens")],
    ids=["hangs", "counts wrong"],
)
def test_but_it_may_not_hang_nor_be_counted_wrong(between: Heard, words: str) -> None:
    def spoil(call: Call, was: Heard) -> Heard:
        if not SMALL <= tokens(call) < LARGE:
            return was
        return between if between.fault is Fault.TIMED_OUT else replace(between, prompt_tokens=7)

    result = judged(overlong_prompt, Spoiled(Shape.SERVER, spoil=spoil), **RANKS)
    assert (result.outcome, words in result.message) == (Outcome.FAILED, True), result


def test_what_the_roomiest_cannot_hold_must_be_refused() -> None:
    def spoil(call: Call, was: Heard) -> Heard:
        return Heard(200, "x", tokens(call)) if tokens(call) >= SMALL else was

    result = judged(overlong_prompt, Spoiled(Shape.SERVER, spoil=spoil), **RANKS)
    assert (result.outcome, "where it had to refuse" in result.message) == (Outcome.FAILED, True), result


def test_a_pair_whose_prefill_refuses_and_whose_decode_hangs_still_fails() -> None:
    prefill = replace(rank("prefill", SMALL), ranks=(rank("prefill", SMALL), rank("prefill", LARGE)))
    decode = replace(rank("decode", CONTEXT - 6), url="http://decode.example")

    def spoil(call: Call, was: Heard) -> Heard:
        if tokens(call) < SMALL:
            return was
        return status(400) if "prefill" in call.url else TIMED_OUT

    legs = (replace(prefill, url="http://prefill.example"), decode)
    result = judged(overlong_prompt, Spoiled(Shape.PAIR, spoil=spoil), legs=legs)
    assert (result.outcome, "Decode did not refuse" in result.message) == (Outcome.FAILED, True), result


@pytest.mark.parametrize(
    ("engines", "more", "wanted"),
    [
        ((rank("prefill", SMALL), rank("prefill", LARGE), rank("decode", 4090)), False, LARGE),
        ((rank("prefill", LARGE), rank("decode", SMALL)), False, SMALL),
        ((rank("server", SMALL), rank("server", LARGE)), False, LARGE),
        ((rank("server", SMALL), rank("server", LARGE)), True, None),
        ((rank("server", SMALL), Known("server", "http://untold")), False, None),
        ((rank("prefill", SMALL), Known("decode", "http://untold")), False, SMALL),
    ],
)
def test_refused_must_be_what_the_roomiest_of_the_narrowest_role_cannot_hold(
    engines: tuple[Known, ...], more: bool, wanted: int | None
) -> None:
    legs = (Known("router", "http://r"),)
    target = Target("r", "tiny", legs, is_router=True, engines=engines, has_more_engines=more)
    assert edges.refused_from(target) == wanted


def test_many_ranks_have_few_edges() -> None:
    ranks = tuple(rank("server", limit) for limit in range(1000, 1064))
    target = Target("s", "tiny", (replace(ranks[0], ranks=ranks),))
    assert edges.limits(target) == (1000, 1063)


def test_of_ranks_that_are_not_told_any_may_be_roomier() -> None:
    told = EngineSeen("s", 0, kv_pool_tokens=SMALL + 6, context_length=CONTEXT, told_input_limit=SMALL, ranks_untold=3)
    target = Target("s", "tiny", (known("server", "http://s", [told]),))
    assert (edges.limits(target), edges.refused_from(target)) == ((SMALL,), CONTEXT)
