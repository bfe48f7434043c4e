from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvfence.domain.asking import Call, Heard
from kvfence.verify import markers
from kvfence.verify.canary import edges, measuring
from kvfence.verify.canary.copying import Tokenizer, Words
from kvfence.verify.canary.measuring import Measure
from kvfence.verify.canary.session import Budget, Known, Session, Target
from kvfence.verify.canary.stand_in import Shape, StandIn
from tests.unit.verify.canary.spoiled import TIMED_OUT, Spoiled

PREFILL = Known("prefill", "http://p", 1024, 4096, 1018, 16)
DECODE = Known("decode", "http://d", 4096, 4096, 4090, 16)
PAIR = Target("a pair", "tiny", (PREFILL, DECODE))
UNTOLD = Target("a server", "tiny", (Known("server", "http://s"),))


# --- at which lengths ---


def test_each_limit_is_asked_two_to_each_side_each_context_one_and_half_way_between() -> None:
    assert set(edges.at_the_edges(PAIR)) == {
        *range(1016, 1021),
        2554,
        *range(4088, 4093),
        4093,
        *(4095, 4096, 4097),
    }


def test_between_the_limits_is_what_passes_a_tokenizer_and_may_fail_behind_it() -> None:
    lengths = edges.between_the_limits(PAIR)
    assert len(lengths) == 5
    assert 1018 < lengths[0] < 1150, "the shortest is answered by decode's oldest pages"
    assert lengths[-1] < 4095


def test_of_a_million_tokens_few_lengths_are_asked() -> None:
    big = replace(PREFILL, kv_pool_tokens=681_280, context_length=1_048_576, max_input_tokens=681_274)
    assert len(edges.between_the_limits(replace(PAIR, legs=(big,)))) == 2


def test_where_all_hold_the_context_nothing_lies_between() -> None:
    capped = replace(PREFILL, context_length=1003, max_input_tokens=997)
    target = replace(PAIR, legs=(capped, replace(DECODE, context_length=1003, max_input_tokens=997)))
    assert edges.between_the_limits(target) == ()
    assert edges.refused_from(target) == 997


def test_a_limit_that_is_not_told_follows_from_pool_and_context() -> None:
    assert edges.limit(replace(PREFILL, max_input_tokens=None)) == 1018
    assert edges.limit(replace(PREFILL, max_input_tokens=None, kv_pool_tokens=None)) is None
    assert edges.refused_from(replace(PAIR, legs=(replace(PREFILL, max_input_tokens=None),))) == 1025


def test_of_a_target_that_tells_nothing_there_is_no_edge() -> None:
    assert edges.at_the_edges(UNTOLD) == edges.between_the_limits(UNTOLD) == edges.limits(UNTOLD) == ()
    assert edges.refused_from(UNTOLD) is None


def test_what_engines_behind_a_router_tell_counts() -> None:
    router = Target("r", "tiny", (Known("router", "http://r"),), is_router=True, engines=(PREFILL, DECODE))
    assert edges.at_the_edges(router) == edges.at_the_edges(PAIR)


known = st.builds(
    Known,
    st.just("server"),
    st.just("http://s"),
    st.none() | st.integers(1, 10**7),
    st.none() | st.integers(1, 10**7),
    st.none() | st.integers(1, 10**7),
    st.none() | st.integers(1, 256),
)


@given(st.lists(known, min_size=1, max_size=4))
def test_lengths_are_few_and_positive_whatever_is_told(legs: list[Known]) -> None:
    target = replace(PAIR, legs=tuple(legs))
    lengths = (*edges.at_the_edges(target), *edges.between_the_limits(target))
    assert all(length >= 1 for length in lengths)
    assert len(lengths) <= 5 * 4 + 3 * 4 + 7 + 5


# --- how texts count ---


def session_of(tokenizer: Tokenizer | None = None, shape: Shape = Shape.SERVER) -> Session:
    stand_in = StandIn(shape, tokenizer=tokenizer)
    return Session(stand_in, stand_in.target, Budget(100, 10**6, 0), random.Random(1))


@pytest.mark.parametrize("tokenizer", [None, Words()])
@pytest.mark.parametrize("wanted", [40, 41, 500, 997])
def test_a_measured_text_has_as_many_tokens_as_it_says(tokenizer: Tokenizer | None, wanted: int) -> None:
    async def ask() -> tuple[int | None, int | None]:
        session = session_of(tokenizer)
        measured = await measuring.measure(session)
        assert isinstance(measured, Measure)
        length = measured.at_most(wanted)
        assert length is not None
        (heard,) = await session.ask(measured.text(length, session.chance), 1)
        return length, heard.prompt_tokens

    length, counted = asyncio.run(ask())
    assert length == counted == wanted


def test_a_tokenizer_of_one_token_per_character_is_known_as_such() -> None:
    measured = asyncio.run(measuring.measure(session_of()))
    assert isinstance(measured, Measure)
    assert measured.begin == 1
    other = asyncio.run(measuring.measure(session_of(Words())))
    assert isinstance(other, Measure)
    assert other.begin is None


@given(st.integers(0, 30), st.integers(1, 4), st.integers(1, 5000), st.integers(0, 2**32))
def test_a_text_is_never_longer_than_wanted_and_ends_with_the_lead(
    base: int, each: int, wanted: int, seed: int
) -> None:
    measured = Measure(base, each)
    length = measured.at_most(wanted)
    if length is None:
        return
    assert wanted - each < length <= wanted
    assert measured.text(length, random.Random(seed)).endswith(markers.LEAD)


def test_there_is_no_text_of_any_length() -> None:
    assert Measure(20, 3).at_most(22) is None
    with pytest.raises(ValueError, match="no text of digits has 25 tokens"):
        Measure(20, 3).text(25, random.Random(1))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _call, heard: replace(heard, prompt_tokens=None),
        lambda _call, heard: replace(heard, prompt_tokens=9),
        lambda _call, heard: replace(heard, prompt_tokens=heard.prompt_tokens % 20),
        lambda _call, _heard: TIMED_OUT,
    ],
)
def test_what_does_not_count_evenly_is_not_measured(spoil: object) -> None:
    def change(call: Call, heard: Heard) -> Heard:
        return spoil(call, heard)  # type: ignore[operator,no-any-return]

    caller = Spoiled(Shape.SERVER, spoil=change)
    session = Session(caller, caller.target, Budget(100, 10**6, 0), random.Random(1))
    assert isinstance(asyncio.run(measuring.measure(session)), str)
